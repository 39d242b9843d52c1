// For each position of a range the positions before it that share its first min_length bytes, nearest first.
//
// A hash chain gives the same, but each step of it waits for the one before. Here the positions of the range are sorted by a
// hash of those bytes (a counting sort, two passes), so that the occurrences before a position stand side by side before it, and a
// search reads them as fast as the machine can. Sorting costs some 3 ns a byte, once.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/targets.h"
#include "fastcompress/lz77/gram.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::lz77 {

class OccurrenceLists {
  public:
    OccurrenceLists(Bytes text, const Params& params) : text_(text), params_(params), gram_(params.min_length) {}

    // Makes [begin, end) the range.
    void sort(size_t begin, size_t end);

    // The match at a position of the range, among candidates in the range.
    FASTCOMPRESS_INLINED Match find(size_t position) const {
        // Words are read that end up to so far behind the text's first min_length bytes from here.
        constexpr size_t kReadable = 8;
        if (position + gram_.size() > text_.size()) return {};
        if (gram_.size() <= 8 && position + kReadable <= text_.size()) return find_short(position);
        return find_slowly(position);
    }

  private:
    FASTCOMPRESS_INLINED Match find_short(size_t position) const;
    Match find_slowly(size_t position) const;
    size_t bucket_begin(size_t position) const {
        const size_t hash = gram_.hash(text_.data() + position, bits_);
        return hash > 0 ? bucket_ends_[hash - 1] : 0;
    }
    uint32_t most_at(size_t position) const {
        return static_cast<uint32_t>(std::min<size_t>(params_.max_length, text_.size() - position));
    }

    Bytes text_;
    Params params_;
    Gram gram_;
    size_t begin_ = 0;
    int bits_ = 0;
    std::vector<uint32_t> bucket_ends_;
    std::vector<uint32_t> order_;   // positions less begin_, by hash, ascending in each bucket
    std::vector<uint32_t> places_;  // of each position, in order_
};

// With min_length at most 8 one comparison of words says whether a position is a candidate and how far it goes, up to 8.
FASTCOMPRESS_INLINED Match OccurrenceLists::find_short(size_t position) const {
    const uint8_t* const data = text_.data() + begin_;
    const auto i = static_cast<uint32_t>(position - begin_);
    const uint32_t lowest = i > params_.window ? i - params_.window : 0;
    const uint32_t most = most_at(position);
    const uint64_t word = load_word(data + i);
    const uint32_t* const first = order_.data() + bucket_begin(position);
    uint32_t num_left = params_.depth;
    uint32_t best = 0;
    uint32_t best_j = 0;
    for (const uint32_t* p = order_.data() + places_[i]; p != first;) {
        const uint32_t j = *--p;
        if (j < lowest) break;
        const uint64_t difference = load_word(data + j) ^ word;
        if ((difference & gram_.mask()) != 0) continue;
        uint32_t length = equal_bytes(difference);
        if (length == 8) {
            // To beat the best it has to agree at its last byte, too.
            if (best >= 8 && data[j + best] != data[i + best]) {
                if (--num_left == 0) break;
                continue;
            }
            length = most > 8 ? 8 + static_cast<uint32_t>(common_prefix(data + j + 8, data + i + 8, most - 8)) : most;
        }
        if (length > best) {
            best = length;
            best_j = j;
            if (best >= most) break;  // none is longer
        }
        if (--num_left == 0) break;
    }
    return {std::min(best, most), i - best_j};
}

}  // namespace fastcompress::lz77
