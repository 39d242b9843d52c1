// A queue of positions by rank: the lowest rank first, and within a rank from left to right.
//
// Positions of one rank share a bucket, so that only ranks go through a heap: in a long pretoken there are many
// positions and few ranks. Positions mostly arrive in ascending order, since merges proceed from left to right; a
// bucket is sorted before use only if some did not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "fastcompress/common/hash.h"

namespace fastcompress::bpe {

class RankQueue {
  public:
    void clear() {
        for (size_t b = 0; b < num_buckets_; ++b) slots_[buckets_[b].slot] = 0;  // few, where the table may be large
        num_buckets_ = 0;
        heap_.clear();
    }
    bool empty() const { return heap_.empty(); }

    // O(1) amortized, O(log ranks) for a rank that is not queued.
    void add(uint32_t rank, uint32_t position) {
        Bucket& bucket = bucket_of(rank);
        if (bucket.positions.empty()) {
            heap_.push_back(rank);
            std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
        } else if (position < bucket.positions.back()) {
            bucket.is_sorted = false;
        }
        bucket.positions.push_back(position);
    }

    // Takes all positions of the lowest rank, ascending, in exchange for an empty vector. The queue must not be empty.
    uint32_t take_lowest(std::vector<uint32_t>& positions) {
        const uint32_t rank = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        heap_.pop_back();
        Bucket& bucket = bucket_of(rank);
        positions.clear();
        std::swap(positions, bucket.positions);
        if (!bucket.is_sorted) std::sort(positions.begin(), positions.end());
        bucket.is_sorted = true;
        return rank;
    }

  private:
    struct Bucket {
        uint32_t rank = 0;
        size_t slot = 0;
        bool is_sorted = true;
        std::vector<uint32_t> positions;
    };

    Bucket& bucket_of(uint32_t rank) {
        size_t i = mix64(rank) & (slots_.size() - 1);
        for (; slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
            Bucket& bucket = buckets_[slots_[i] - 1];
            if (bucket.rank == rank) return bucket;
        }
        if (2 * (num_buckets_ + 1) > slots_.size()) {
            grow();
            i = free_slot(rank);
        }
        if (num_buckets_ == buckets_.size()) buckets_.emplace_back();
        Bucket& bucket = buckets_[num_buckets_++];
        slots_[i] = static_cast<uint32_t>(num_buckets_);
        bucket.rank = rank;
        bucket.slot = i;
        bucket.is_sorted = true;
        bucket.positions.clear();
        return bucket;
    }
    size_t free_slot(uint32_t rank) const {
        size_t i = mix64(rank) & (slots_.size() - 1);
        while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
        return i;
    }
    void grow() {
        slots_.assign(2 * slots_.size(), 0);
        for (size_t b = 0; b < num_buckets_; ++b) {
            buckets_[b].slot = free_slot(buckets_[b].rank);
            slots_[buckets_[b].slot] = static_cast<uint32_t>(b + 1);
        }
    }

    std::vector<Bucket> buckets_;  // those past num_buckets_ keep their memory for later
    size_t num_buckets_ = 0;
    std::vector<uint32_t> slots_ = std::vector<uint32_t>(64);  // bucket index + 1, or 0
    std::vector<uint32_t> heap_;                               // ranks of the buckets that are not empty, least on top
};

}  // namespace fastcompress::bpe
