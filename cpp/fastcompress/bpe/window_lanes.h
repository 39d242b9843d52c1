// Merges windows of up to 64 bytes side by side, as merge_lanes.h does with pretokens: while one lane waits for the pair
// table the others work.
//
// A window is longer than a usual pretoken, so here the lowest key is found by vector instructions (the compiler's own,
// of a loop of fixed length). That pays because a lane's turn comes only after the others': by then what it stored has
// left the store buffer, where vector loads would have to wait for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fastcompress/bpe/vocabulary.h"

namespace fastcompress::bpe {

class WindowLanes {
  public:
    static constexpr uint32_t kMaxBytes = 64;  // of a window

    explicit WindowLanes(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    // What a window encodes to: token i is ids[i] and ends before the window's byte ends[i].
    struct Result {
        uint32_t count;
        std::array<TokenId, kMaxBytes> ids;
        std::array<uint8_t, kMaxBytes> ends;
    };

    // Fills results[i] for each of `count` windows, window(i) of 1 to kMaxBytes bytes.
    template <class Window>
    void merge(uint32_t count, const Window& window, Result* results) {
        uint32_t next_window = 0;
        size_t num_active = 0;
        while (num_active < kLanes && next_window < count) {
            begin(lanes_[num_active++], window(next_window), results + next_window);
            ++next_window;
        }
        while (num_active > 0) {
            for (size_t k = 0; k < num_active;) {
                Lane& lane = lanes_[k];
                if (take_turn(lane)) {
                    ++k;
                    continue;
                }
                finish(lane);
                if (next_window < count) {
                    begin(lane, window(next_window), results + next_window);
                    ++next_window;
                    ++k;
                } else if (--num_active != k) {
                    lane = lanes_[num_active];
                }
            }
        }
    }

  private:
    static constexpr size_t kLanes = 8;
    static constexpr int32_t kNone = 0x7fffffff;
    static constexpr int kPositionBits = 6;
    static_assert(kMaxBytes == 1u << kPositionBits && kMaxVocabularySize << kPositionBits <= size_t{1} << 31);

    // A doubly linked list of tokens in arrays. The pair that begins at position i has the key rank * 64 + i, or kNone
    // if it does not merge, so the least key is the leftmost pair of lowest rank.
    struct Lane {
        alignas(64) std::array<int32_t, kMaxBytes> keys;
        std::array<TokenId, kMaxBytes> ids;
        std::array<uint8_t, kMaxBytes + 1> previous;
        std::array<uint8_t, kMaxBytes> next;
        uint32_t size;
        uint32_t merged;  // the position whose pairs, with the tokens before and after it, are to be looked up
        bool is_pending;
        Result* result;
    };

    void begin(Lane& lane, Bytes bytes, Result* result) const {
        lane.result = result;
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
        std::fill(lane.keys.begin() + lane.size - 1, lane.keys.end(), kNone);
    }

    static void set_key(Lane& lane, uint32_t i, uint32_t rank) {
        lane.keys[i] = rank == kNoRank ? kNone : static_cast<int32_t>(rank << kPositionBits | i);
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
        int32_t least = kNone;
        for (const int32_t key : lane.keys) least = std::min(least, key);
        if (least == kNone) return false;
        const uint32_t i = static_cast<uint32_t>(least) % kMaxBytes;
        const uint32_t gone = lane.next[i];
        const uint32_t after = lane.next[gone];
        lane.ids[i] = vocabulary_.merge_result(static_cast<uint32_t>(least) >> kPositionBits);
        lane.next[i] = static_cast<uint8_t>(after);
        lane.previous[after] = static_cast<uint8_t>(i);
        lane.keys[i] = kNone;
        lane.keys[gone] = kNone;
        if (after < lane.size) vocabulary_.prefetch_rank(lane.ids[i], lane.ids[after]);
        if (i > 0) vocabulary_.prefetch_rank(lane.ids[lane.previous[i]], lane.ids[i]);
        lane.merged = i;
        lane.is_pending = true;
        return true;
    }

    static void finish(const Lane& lane) {
        Result& result = *lane.result;
        uint32_t count = 0;
        for (uint32_t i = 0; i < lane.size; i = lane.next[i]) {
            result.ids[count] = lane.ids[i];
            result.ends[count++] = lane.next[i];
        }
        result.count = count;
    }

    const Vocabulary& vocabulary_;
    std::array<Lane, kLanes> lanes_;
};

}  // namespace fastcompress::bpe
