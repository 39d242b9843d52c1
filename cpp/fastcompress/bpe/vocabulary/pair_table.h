// The pairs of tokens that merge, with their ranks: a hash table with one word per pair and four words per bucket.
//
// Each merge takes two lookups in this table, at random positions in several megabytes. So the time depends on the
// number of cache lines read, on how early the bucket is known, and on mispredicted branches. A slot has 8 bytes: two
// ids of 21 bits each, and the rank plus one in 22 bits, so zero is an empty slot. At most half of the slots are used.
// A bucket is half a cache line and is compared as a whole; the search continues in the next bucket only if it is full,
// which at most one in ten is.
//
// Tried and dropped: comparing slot by slot (every second lookup mispredicted the number of slots).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/hash.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bpe {

// Ids and ranks are below this.
inline constexpr size_t kMaxVocabularySize = size_t{1} << 21;
inline constexpr uint32_t kNoRank = 0xffffffffu;

class PairTable {
  public:
    // A pair and its bucket, computed once for prefetch() and a later find().
    struct Location {
        uint64_t key;
        size_t bucket;
    };

    explicit PairTable(size_t max_entries = 0)
        : slots_(std::bit_ceil(std::max<size_t>(2 * kBucket, 2 * max_entries))),
          bucket_mask_(slots_.size() / kBucket - 1),
          shift_(64 - std::countr_zero(slots_.size() / kBucket)) {}

    // Adds a pair. Returns false, and keeps the first entry, if it exists already.
    bool insert(TokenId left, TokenId right, uint32_t rank) {
        const Location location = locate(left, right);
        for (size_t bucket = location.bucket;; bucket = (bucket + 1) & bucket_mask_) {
            for (size_t i = bucket * kBucket; i < (bucket + 1) * kBucket; ++i) {
                if (slots_[i] == 0) {
                    slots_[i] = location.key << kRankBits | (rank + 1);
                    return true;
                }
                if (slots_[i] >> kRankBits == location.key) return false;
            }
        }
    }
    // The bucket is the upper bits of a product with an odd number that is drawn once per process. So two keys collide
    // about as rarely as at random, even if an adversary chose them (Dietzfelbinger et al., 1997).
    [[gnu::always_inline]] Location locate(TokenId left, TokenId right) const {
        const uint64_t key = uint64_t{left} << kIdBits | right;
        return {key, static_cast<size_t>(key * multiplier_ >> shift_)};
    }
    // Prefetches the memory that find() will read.
    [[gnu::always_inline]] void prefetch(const Location& location) const {
        fastcompress::prefetch(&slots_[location.bucket * kBucket]);
    }
    // Returns the rank of a pair, or kNoRank if it does not merge. O(1).
    [[gnu::always_inline]] uint32_t find(const Location& location) const {
        for (size_t bucket = location.bucket;; bucket = (bucket + 1) & bucket_mask_) {
            const uint64_t* slots = &slots_[bucket * kBucket];
            const uint32_t rank_plus_one = find_in_bucket(slots, location.key << kRankBits);
            // A bucket with an empty slot ends the search; the last slot is the last to be filled. One branch, which is nearly
            // always taken: nobody can guess whether the pair is there, and that guess would wait for memory.
            const bool is_found = rank_plus_one != 0;
            const bool has_room = slots[kBucket - 1] == 0;
            if (is_found | has_room) [[likely]]
                return rank_plus_one - 1;
        }
    }

  private:
    static constexpr int kIdBits = 21;
    static constexpr int kRankBits = 22;
    static constexpr size_t kBucket = 4;  // number of slots in a bucket
    static_assert(kMaxVocabularySize == size_t{1} << kIdBits && 2 * kIdBits + kRankBits == 64 && kNoRank + 1u == 0);

    // Returns the rank plus one in the slot of the key, or 0 if there is none. The exclusive or of the key and its slot
    // is zero above the rank, so what remains is the answer.
    [[gnu::always_inline]] static uint32_t find_in_bucket(const uint64_t* slots, uint64_t shifted_key) {
#if defined(__GNUC__)
        using Bucket = uint64_t __attribute__((vector_size(8 * kBucket)));
        Bucket bucket;
        std::memcpy(&bucket, slots, sizeof bucket);
        const Bucket differences = bucket ^ shifted_key;
        const Bucket answers = differences & reinterpret_cast<Bucket>(differences >> kRankBits == 0);
        return static_cast<uint32_t>(answers[0] | answers[1] | answers[2] | answers[3]);
#else
        uint64_t answer = 0;
        for (size_t i = 0; i < kBucket; ++i) {
            const uint64_t differences = slots[i] ^ shifted_key;
            answer |= differences >> kRankBits == 0 ? differences : 0;
        }
        return static_cast<uint32_t>(answer);
#endif
    }

    HugeArray<uint64_t> slots_;
    size_t bucket_mask_;
    int shift_;
    uint64_t multiplier_ = hash_seed() | 1;
};

}  // namespace fastcompress::bpe
