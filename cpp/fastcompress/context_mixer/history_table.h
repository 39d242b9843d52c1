// A hash table from contexts to bit histories. A slot holds the histories of the 15 decisions of one nibble in one
// context. Four slots make a bucket, which is a cache line: the slot with the right check is used, or else the slot
// that has seen least is replaced. So a nibble costs one cache miss per context, and that line can be prefetched.
//
// The hash of the keys is part of the format (FORMAT.md).
#pragma once

#include <bit>
#include <cstring>

#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::context_mixer {

inline constexpr int kSlotStates = 15;
inline constexpr int kSlotsPerBucket = 4;

struct alignas(64) HistoryBucket {
    uint8_t checks[kSlotsPerBucket];
    uint8_t states[kSlotsPerBucket][kSlotStates];
};
static_assert(sizeof(HistoryBucket) == 64);

class HistoryTable {
  public:
    // Makes an empty table of 2^log2_buckets buckets of 64 bytes.
    explicit HistoryTable(unsigned log2_buckets) : shift_(64 - log2_buckets), buckets_(size_t{1} << log2_buckets) {}

    // `key` is that of the context plus the bits of the byte so far.
    static uint64_t hash(uint64_t key) { return key * 0x9e3779b97f4a7c15u; }

    [[gnu::always_inline]] void prefetch_bucket(uint64_t hash) const { prefetch(&buckets_[hash >> shift_]); }

    // Returns the slot's 15 histories; a slot that belonged to another context is emptied first.
    uint8_t* find_or_take(uint64_t hash) {
        HistoryBucket& bucket = buckets_[hash >> shift_];
        const auto check = static_cast<uint8_t>(hash >> 24);
        uint32_t slot = match(bucket, check);
        if (slot == kSlotsPerBucket) [[unlikely]] {
            slot = least_seen(bucket);
            std::memset(bucket.states[slot], 0, kSlotStates);
            bucket.checks[slot] = check;
        }
        return bucket.states[slot];
    }
    // Returns the same without changing anything; all zeros if no slot matches.
    const uint8_t* find(uint64_t hash) const {
        static constexpr uint8_t kUnseen[kSlotStates] = {};
        const HistoryBucket& bucket = buckets_[hash >> shift_];
        const uint32_t slot = match(bucket, static_cast<uint8_t>(hash >> 24));
        return slot == kSlotsPerBucket ? kUnseen : bucket.states[slot];
    }

    size_t num_buckets() const { return buckets_.size(); }
    HistoryBucket& bucket(size_t i) { return buckets_[i]; }
    const HistoryBucket& bucket(size_t i) const { return buckets_[i]; }

  private:
    // Returns the first slot with the check, or kSlotsPerBucket.
    static uint32_t match(const HistoryBucket& bucket, uint8_t check) {
        uint32_t checks = 0;  // little-endian: compilers make one load of this loop
        for (int i = 0; i < kSlotsPerBucket; ++i) checks |= uint32_t{bucket.checks[i]} << (8 * i);
        const uint32_t difference = checks ^ check * 0x01010101u;
        // Sets the upper bit of the lowest byte that is zero; bits above that one may be set wrongly.
        const uint32_t zero = (difference - 0x01010101u) & ~difference & 0x80808080u;
        return static_cast<uint32_t>(std::countr_zero(zero)) / 8;
    }
    // Returns the slot whose first history has the smallest number; the first such slot on a tie.
    static uint32_t least_seen(const HistoryBucket& bucket) {
        uint32_t least = ~uint32_t{0};
        for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
            least = std::min(least, uint32_t{bucket.states[i][0]} * kSlotsPerBucket + i);
        }
        return least % kSlotsPerBucket;
    }

    unsigned shift_;
    HugeArray<HistoryBucket> buckets_;
};

}  // namespace fastcompress::context_mixer
