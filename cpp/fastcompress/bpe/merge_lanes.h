// Merges several short pretokens side by side.
//
// Merging one pretoken is a chain of look-ups in the pair table, each of which waits for memory and decides the next:
// two thirds of the time nothing else happens. Here the merges of up to kLanes pretokens take turns. A turn ends with
// asking for the two cache lines that the lane's next turn needs, and by then they have come.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "fastcompress/bpe/vocabulary.h"

namespace fastcompress::bpe {

class MergeLanes {
  public:
    static constexpr size_t kMaxBytes = 32;  // of a pretoken

    explicit MergeLanes(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    // Calls done(i, ids) for each of `count` pretokens of 1 to kMaxBytes bytes, in any order: ids are those of
    // pretoken(i) by merges alone.
    template <class Pretoken, class Done>
    void merge(size_t count, const Pretoken& pretoken, const Done& done) {
        size_t next_pretoken = 0;
        size_t num_active = 0;
        while (num_active < kLanes && next_pretoken < count) begin(lanes_[num_active++], next_pretoken++, pretoken);
        while (num_active > 0) {
            for (size_t k = 0; k < num_active;) {
                Lane& lane = lanes_[k];
                if (take_turn(lane)) {
                    ++k;
                    continue;
                }
                finish(lane, done);
                if (next_pretoken < count) {
                    begin(lane, next_pretoken++, pretoken);
                    ++k;
                } else if (--num_active != k) {
                    lane = lanes_[num_active];
                }
            }
        }
    }

  private:
    static constexpr size_t kLanes = 8;
    static constexpr uint32_t kNone = 0xffffffffu;

    // A pretoken being merged: a doubly linked list of tokens in arrays. The pair that begins at position i has the key
    // rank * 256 + i, or kNone if it does not merge, so the least key is the leftmost pair of lowest rank.
    struct Lane {
        uint32_t keys[kMaxBytes];
        TokenId ids[kMaxBytes];
        uint8_t previous[kMaxBytes + 1];
        uint8_t next[kMaxBytes];
        uint32_t size;
        uint32_t merged;  // the position whose pairs, with the tokens before and after it, are to be looked up
        bool is_pending;
        size_t index;
    };

    template <class Pretoken>
    void begin(Lane& lane, size_t index, const Pretoken& pretoken) {
        const Bytes bytes = pretoken(index);
        lane.index = index;
        lane.size = static_cast<uint32_t>(bytes.size());
        lane.is_pending = false;
        for (uint32_t i = 0; i < lane.size; ++i) {
            lane.ids[i] = vocabulary_.byte_token(bytes[i]);
            lane.previous[i] = static_cast<uint8_t>(i - 1);
            lane.next[i] = static_cast<uint8_t>(i + 1);
        }
        for (uint32_t i = 0; i + 1 < lane.size; ++i) {
            set_key(lane, i, vocabulary_.find_byte_rank(bytes[i], bytes[i + 1]));
        }
    }

    static void set_key(Lane& lane, uint32_t i, uint32_t rank) {
        lane.keys[i] = rank == kNoRank ? kNone : rank << 8 | i;
    }

    // Merges the next pair; false if none merges.
    bool take_turn(Lane& lane) const {
        if (lane.is_pending) {
            const uint32_t i = lane.merged;
            const uint32_t after = lane.next[i];
            if (after < lane.size) set_key(lane, i, vocabulary_.find_rank(lane.ids[i], lane.ids[after]));
            if (i > 0) {
                const uint32_t before = lane.previous[i];
                set_key(lane, before, vocabulary_.find_rank(lane.ids[before], lane.ids[i]));
            }
        }
        uint32_t least = kNone;
        for (uint32_t i = 0; i + 1 < lane.size; ++i) {
            least = std::min(least, lane.keys[i]);
#if defined(__GNUC__)
            asm("" : "+r"(least));  // stay scalar: vector loads would wait for the keys just stored one by one
#endif
        }
        if (least == kNone) return false;
        const uint32_t i = least & 0xff;
        const uint32_t gone = lane.next[i];
        const uint32_t after = lane.next[gone];
        lane.ids[i] = vocabulary_.merge_result(least >> 8);
        lane.next[i] = static_cast<uint8_t>(after);
        lane.previous[after] = static_cast<uint8_t>(i);
        lane.keys[i] = kNone;
        if (gone + 1 < lane.size) lane.keys[gone] = kNone;
        if (after < lane.size) vocabulary_.prefetch_rank(lane.ids[i], lane.ids[after]);
        if (i > 0) vocabulary_.prefetch_rank(lane.ids[lane.previous[i]], lane.ids[i]);
        lane.merged = i;
        lane.is_pending = true;
        return true;
    }

    template <class Done>
    static void finish(const Lane& lane, const Done& done) {
        TokenId ids[kMaxBytes];
        size_t count = 0;
        for (uint32_t i = 0; i < lane.size; i = lane.next[i]) ids[count++] = lane.ids[i];
        done(lane.index, std::span<const TokenId>(ids, count));
    }

    const Vocabulary& vocabulary_;
    std::array<Lane, kLanes> lanes_;
};

}  // namespace fastcompress::bpe
