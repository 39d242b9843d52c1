// Hash chains over a window of at most 64 KiB: each position links to the nearest one before it whose first min_length
// bytes have the same hash.
//
//   position    0 1 2 3 4 5 6 7 8        min_length 2: "ab" begins at 0, 3 and 6,
//   text        a b c a b d a b c        so 6 links to 3 and 3 links to 0.
//
// Links are distances of 16 bits in a ring, so that the chains of a window take 128 KiB beside the window itself, and a
// walk along them stays in the second-level cache of the processor. A distance d is stored as d - 1. The largest value
// stands for a distance of 65,536, and also for no link: a walk compares the bytes at every position that it reaches,
// so it sees for itself whether there is an occurrence 65,536 bytes back, and ends there, at the edge of the window.
//
// Cost: about 14 instructions per byte. Tried and dropped: 2^15 heads in place of 2^16 make the parse 8 % slower
// (longer chains), 2^14 another 5 %.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/gram.h"

namespace fastcompress::lz77 {

class WindowChains {
  public:
    static constexpr size_t kMaxWindow = size_t{1} << 16;
    // How far extend() may go beyond a position whose chain is still needed, which goes back over the window.
    static constexpr size_t kMaxAhead = size_t{1} << 16;
    static constexpr uint32_t kMaxMinLength = 8;

    // Takes O(min(text.size(), 2^17)) memory. Requires 1 <= min_length <= kMaxMinLength; keeps a view of the text.
    WindowChains(Bytes text, uint32_t min_length)
        : text_(text),
          gram_(min_length),
          bits_(std::clamp(static_cast<int>(std::bit_width(text.size())), 8, 16)),
          ring_mask_(std::min(std::bit_ceil(text.size() + 1), kMaxWindow + kMaxAhead) - 1),
          heads_(size_t{1} << bits_),
          links_(ring_mask_ + 1) {
        assert(min_length >= 1 && min_length <= kMaxMinLength);
    }

    // Links the positions before `end` that min_length bytes begin at. Chains of positions before end - kMaxAhead can
    // no longer be followed through the whole window.
    void extend(size_t end) {
        const size_t num_grams = text_.size() < gram_.size() ? 0 : text_.size() - gram_.size() + 1;
        end = std::min(end, num_grams);
        const size_t num_words = text_.size() < 8 ? 0 : std::min(end, text_.size() - 7);
        const uint8_t* const data = text_.data();
        size_t i = end_;
        for (; i < num_words; ++i) link(i, gram_.hash_of_word(load_word(data + i), bits_));
        for (; i < end; ++i) link(i, gram_.hash(data + i, bits_));
        end_ = std::max(end_, end);
    }
    // Positions before this one are linked.
    size_t end() const { return end_; }
    // The position before a linked one on its chain; less than 0, or more than the window away, if there is none.
    ptrdiff_t before(ptrdiff_t position) const {
        return position - 1 - links_[static_cast<size_t>(position) & ring_mask_];
    }
    const Gram& gram() const { return gram_; }

  private:
    // A hash that was never seen has position 0 as its head. That does no harm: position 0 is the last of every chain.
    void link(size_t position, size_t hash) {
        const size_t distance = position - heads_[hash];
        heads_[hash] = static_cast<uint32_t>(position);
        links_[position & ring_mask_] = static_cast<uint16_t>(std::min(distance, kMaxWindow) - 1);
    }

    Bytes text_;
    Gram gram_;
    int bits_;
    size_t ring_mask_;
    size_t end_ = 0;
    std::vector<uint32_t> heads_;  // of each hash the last position that has it
    std::vector<uint16_t> links_;
};

}  // namespace fastcompress::lz77
