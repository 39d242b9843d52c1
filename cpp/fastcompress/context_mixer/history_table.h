// Bit histories by context: a hash table of nibbles. For each context and half a byte there is a slot with the
// histories of the 15 decisions of a nibble, and four slots are one cache line, of which one with the right check is
// taken, or else the one that has seen least is given away. So a nibble costs one miss of the cache a context, and that
// can be asked for early.
//
// The keys' hash is part of the model's format (FORMAT.md).
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
    // 2^log2_buckets of 64 bytes, empty.
    explicit HistoryTable(unsigned log2_buckets) : shift_(64 - log2_buckets), buckets_(size_t{1} << log2_buckets) {}

    // `key`: that of the context and the nibble.
    static uint64_t hash(uint64_t key) { return key * 0x9e3779b97f4a7c15u; }

    [[gnu::always_inline]] void ask(uint64_t hash) const { prefetch(&buckets_[hash >> shift_]); }

    // The slot's 15 histories; it is emptied first if it was another's.
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
    // The same without a change; all zeros if there is none.
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
    // The first slot with the check; kSlotsPerBucket if there is none.
    static uint32_t match(const HistoryBucket& bucket, uint8_t check) {
        uint32_t checks = 0;  // little-endian, which compilers make one load of
        for (int i = 0; i < kSlotsPerBucket; ++i) checks |= uint32_t{bucket.checks[i]} << (8 * i);
        const uint32_t difference = checks ^ check * 0x01010101u;
        // The lowest byte that is zero gets its upper bit set; higher ones may, wrongly, too.
        const uint32_t zero = (difference - 0x01010101u) & ~difference & 0x80808080u;
        return static_cast<uint32_t>(std::countr_zero(zero)) / 8;
    }
    // By the number of the history of the nibble's first bit, of equal ones the first slot.
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
