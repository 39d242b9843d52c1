// A set of short keys that answers "no" for most keys that are not in it, and never for one that is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "fastcompress/bpe/vocabulary/short_key.h"

namespace fastcompress::bpe {

// A bitmap of 8 to 16 bits per key with one bit set for each. It fits into the second-level cache, and saves most
// lookups in a table that does not.
class KeyFilter {
  public:
    explicit KeyFilter(size_t max_keys = 0)
        : shift_(64 - std::countr_zero(num_bits(max_keys))), words_(num_bits(max_keys) / 64) {}

    void insert(ShortKey key) { words_[bit_of(key) / 64] |= uint64_t{1} << bit_of(key) % 64; }
    bool may_contain(ShortKey key) const { return (words_[bit_of(key) / 64] >> bit_of(key) % 64 & 1) != 0; }

  private:
    static size_t num_bits(size_t max_keys) { return std::bit_ceil(std::max<size_t>(64, 8 * max_keys)); }
    // Uses the upper bits of the hash, because tables use the lower ones.
    size_t bit_of(ShortKey key) const { return static_cast<size_t>(key.hash() >> shift_); }

    int shift_;
    std::vector<uint64_t> words_;
};

}  // namespace fastcompress::bpe
