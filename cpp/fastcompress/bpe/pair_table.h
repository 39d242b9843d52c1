// Which pairs of tokens merge, and in which order: an open-addressing table of one word a pair.
//
// Merging a pretoken asks this table twice a merge, at random places of megabytes; so what counts is how many cache
// lines it takes and how soon the place is known. A slot is 8 bytes: the two ids, 21 bits each, and the rank plus one,
// 22 bits, so zero is an empty slot. At most half of the slots are used, and a run of them mostly lies in one line.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fastcompress/bpe/token_buffer.h"
#include "fastcompress/common/hash.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bpe {

// Ids and ranks are below this.
inline constexpr size_t kMaxVocabularySize = size_t{1} << 21;
inline constexpr uint32_t kNoRank = 0xffffffffu;

class PairTable {
  public:
    explicit PairTable(size_t max_entries = 0)
        : slots_(std::bit_ceil(std::max<size_t>(8, 2 * max_entries))),
          mask_(slots_.size() - 1),
          shift_(64 - std::countr_zero(slots_.size())) {}

    // Returns false if the pair is there already (the first entry stays).
    bool insert(TokenId left, TokenId right, uint32_t rank) {
        const uint64_t key = key_of(left, right);
        size_t i = first_slot(key);
        for (; slots_[i] != 0; i = (i + 1) & mask_) {
            if (slots_[i] >> kRankBits == key) return false;
        }
        slots_[i] = key << kRankBits | (rank + 1);
        return true;
    }
    // Asks for the memory that find() will read.
    [[gnu::always_inline]] void prefetch(TokenId left, TokenId right) const {
        fastcompress::prefetch(&slots_[first_slot(key_of(left, right))]);
    }
    // The rank of a pair, kNoRank if it does not merge. O(1).
    uint32_t find(TokenId left, TokenId right) const {
        const uint64_t key = key_of(left, right);
        for (size_t i = first_slot(key);; i = (i + 1) & mask_) {
            const uint64_t slot = slots_[i];
            if (slot >> kRankBits == key || slot == 0) {
                return (static_cast<uint32_t>(slot) & kRankMask) - 1;  // of an empty slot: kNoRank
            }
        }
    }

  private:
    static constexpr int kIdBits = 21;
    static constexpr int kRankBits = 22;
    static constexpr uint32_t kRankMask = (uint32_t{1} << kRankBits) - 1;
    static_assert(kMaxVocabularySize == size_t{1} << kIdBits && 2 * kIdBits + kRankBits == 64 && kNoRank + 1u == 0);

    static uint64_t key_of(TokenId left, TokenId right) { return uint64_t{left} << kIdBits | right; }
    // The upper bits of a product with an odd number that is drawn once a process: two keys meet as seldom as at random,
    // whoever chose them (Dietzfelbinger et al., 1997).
    size_t first_slot(uint64_t key) const { return static_cast<size_t>(key * (kHashSeed | 1) >> shift_); }

    HugeArray<uint64_t> slots_;
    size_t mask_;
    int shift_;
};

}  // namespace fastcompress::bpe
