// For each position, the earlier positions within the window that share its first min_length bytes, nearest first.
//
// A hash chain gives the same, but each of its steps waits for the one before. Here the positions of a block, which is
// as long as the window, are sorted by a hash of those bytes (a counting sort). So the occurrences in a block are
// adjacent, and a search reads them at full speed: first those before the position in its own block, then those in the
// block before.
//
//   block        a b a b a c      min_length 2, hashes of ab, ba, ac in this order:
//   order        0 2 | 1 3 | 4    the occurrences before position 2 ("ab") are the elements before it in its bucket: 0
//
// For windows above 64 KiB and for min_length above 8; window_parse.cc serves the usual settings.
//
// Tried and dropped: one list for a block and the window before it, sorted again for every block (sorting took twice as
// long); blocks of 65,535 bytes and positions of two bytes for small windows (window_parse.cc is 1.4 times as fast).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/targets.h"
#include "fastcompress/lz77/gram.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::lz77 {

class OccurrenceLists {
  public:
    OccurrenceLists(Bytes text, const Params& params)
        : text_(text),
          params_(params),
          gram_(params.min_length),
          block_bytes_(
              std::min(std::max<size_t>(kLeastBlockBytes, params.window - 1), std::max<size_t>(1, text.size()))) {
        sort(0);
    }

    // Returns the match at a position. Requires positions in ascending order.
    FASTCOMPRESS_INLINED Match find(size_t position) {
        while (position >= here_.begin + block_bytes_) sort(here_.begin + block_bytes_);
        if (position + gram_.size() > text_.size()) return {};
        // If a word can be read at the position, it can be read at all positions before it.
        if (gram_.size() <= 8 && position + 8 <= text_.size()) return search<true>(position);
        return search<false>(position);
    }

  private:
    static constexpr size_t kLeastBlockBytes = 0xffff;
    struct Block {
        size_t begin = 0;
        std::vector<uint32_t> order;        // positions by hash; ascending for each hash
        std::vector<uint32_t> bucket_ends;  // for each hash, where its positions end in `order`
    };
    struct Search {
        uint32_t num_left;
        uint32_t best;  // the length of the best match, or min_length - 1 if there is none yet
        size_t source = 0;
    };

    void sort(size_t begin);
    template <bool kByWords>
    FASTCOMPRESS_INLINED Match search(size_t position) const;
    // Searches a list backwards, from `p` to `first`. Returns whether other blocks may hold better matches.
    template <bool kByWords>
    FASTCOMPRESS_INLINED bool scan(const Block& block, const uint32_t* p, const uint32_t* first, size_t position,
                                   uint32_t most, Search& search) const;

    FASTCOMPRESS_INLINED static bool improve(const uint8_t* source, const uint8_t* target, uint32_t length,
                                             uint32_t most, Search& search);

    Bytes text_;
    Params params_;
    Gram gram_;
    size_t block_bytes_;
    int bits_ = 0;
    Block here_;
    std::array<Block, 2> before_;    // the blocks before, the latest first
    std::vector<uint32_t> indices_;  // for each position of the block `here_`, its index in `order`
    std::vector<uint32_t> hashes_;
};

template <bool kByWords>
FASTCOMPRESS_INLINED Match OccurrenceLists::search(size_t position) const {
    const auto most = static_cast<uint32_t>(std::min<size_t>(params_.max_length, text_.size() - position));
    const size_t hash = hashes_[position - here_.begin];
    const auto begin_of = [&](const Block& block) { return hash > 0 ? block.bucket_ends[hash - 1] : 0; };
    Search search = {params_.depth, gram_.size() - 1};
    const uint32_t* const order = here_.order.data();
    bool goes_on = scan<kByWords>(here_, order + indices_[position - here_.begin], order + begin_of(here_), position,
                                  most, search);
    for (size_t begin = here_.begin, k = 0; goes_on && begin > 0 && position - begin < params_.window; ++k) {
        const Block& block = before_[k];
        const uint32_t* const first = block.order.data();
        goes_on =
            scan<kByWords>(block, first + block.bucket_ends[hash], first + begin_of(block), position, most, search);
        begin = block.begin;
    }
    if (search.best < gram_.size()) return {};
    return {std::min(search.best, most), static_cast<uint32_t>(position - search.source)};
}

template <bool kByWords>
FASTCOMPRESS_INLINED bool OccurrenceLists::scan(const Block& block, const uint32_t* p, const uint32_t* first,
                                                size_t position, uint32_t most, Search& search) const {
    const uint8_t* const data = text_.data() + block.begin;
    const uint8_t* const target = text_.data() + position;
    const size_t reach = position - block.begin;  // the distance to the beginning of the block
    const size_t lowest = reach > params_.window ? reach - params_.window : 0;
    const uint32_t min_length = gram_.size();
    uint32_t num_left = search.num_left;
    if constexpr (kByWords) {
        // One comparison of words gives the length up to 8. Whether that makes the position a candidate is
        // unpredictable, so there is no branch on it. Few positions are better than the best.
        const uint64_t word = load_word(target);
        uint32_t beaten = std::min(search.best, 7u);
        while (p != first) {
            const size_t offset = *--p;
            if (offset < lowest) return false;
            const uint32_t length = equal_bytes(load_word(data + offset) ^ word);
            num_left -= length >= min_length;
            if (length > beaten) [[unlikely]] {
                if (improve(data + offset, target, length, most, search)) search.source = block.begin + offset;
                if (search.best >= most) return false;  // no match can be longer
                beaten = std::min(search.best, 7u);
            }
            if (num_left == 0) return false;
        }
    } else {
        while (p != first) {
            const size_t offset = *--p;
            if (offset < lowest) return false;
            if (!gram_.equal(data + offset, target)) continue;
            const auto length = static_cast<uint32_t>(common_prefix(data + offset, target, most));
            if (length > search.best) {
                search.best = length;
                search.source = block.begin + offset;
                if (length >= most) return false;
            }
            if (--num_left == 0) return false;
        }
    }
    search.num_left = num_left;
    return true;
}

// Updates the best match if the source, whose first word agrees for `length` bytes, is better. Returns whether it is.
FASTCOMPRESS_INLINED bool OccurrenceLists::improve(const uint8_t* source, const uint8_t* target, uint32_t length,
                                                   uint32_t most, Search& search) {
    if (length == 8) {
        // A longer match must also agree in the byte after the end of the best one.
        if (search.best >= 8 && source[search.best] != target[search.best]) return false;
        length = most > 8 ? 8 + static_cast<uint32_t>(common_prefix(source + 8, target + 8, most - 8)) : most;
        if (length <= search.best) return false;
    }
    search.best = length;
    return true;
}

// Makes the block that begins at `begin` the current one.
inline void OccurrenceLists::sort(size_t begin) {
    std::swap(before_[0], before_[1]);
    std::swap(here_, before_[0]);
    here_.begin = begin;
    const size_t last = text_.size() < gram_.size() ? 0 : text_.size() - gram_.size() + 1;
    const size_t count = std::min(begin + block_bytes_, last) - std::min(begin, last);
    if (bits_ == 0) bits_ = std::clamp(static_cast<int>(std::bit_width(block_bytes_)) - 1, 8, 20);
    here_.bucket_ends.assign(size_t{1} << bits_, 0);
    here_.order.resize(count);
    indices_.resize(count);
    const uint8_t* const data = text_.data() + begin;
    uint32_t* const ends = here_.bucket_ends.data();
    hashes_.resize(count);
    const auto note = [&](size_t i, size_t hash) {
        hashes_[i] = static_cast<uint32_t>(hash);
        ++ends[hash];
    };
    size_t i = 0;
    const size_t num_words = gram_.size() > 8 || text_.size() < begin + 8 ? 0 : text_.size() - begin - 7;
    for (; i < std::min(count, num_words); ++i) note(i, gram_.hash_of_word(load_word(data + i), bits_));
    for (; i < count; ++i) note(i, gram_.hash(data + i, bits_));
    uint32_t sum = 0;
    for (uint32_t& bucket : here_.bucket_ends) {
        const uint32_t size = bucket;
        bucket = static_cast<uint32_t>(sum);  // the beginning of the bucket; its end once it is filled
        sum += size;
    }
    for (i = 0; i < count; ++i) {
        const uint32_t index = ends[hashes_[i]]++;
        here_.order[index] = static_cast<uint32_t>(i);
        indices_[i] = index;
    }
}

}  // namespace fastcompress::lz77
