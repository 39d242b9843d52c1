// Merges windows of up to 64 bytes side by side, as merge_lanes.h does with pretokens: while one lane waits for the pair
// table the others work.
//
// A window is longer than a usual pretoken, so here the lowest key is found by vector instructions (the compiler's own,
// of a loop of fixed length). That pays because a lane's turn comes only after the others': by then what it stored has
// left the store buffer, where vector loads would have to wait for it.
#pragma once

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

    // Fills results[i] for each of `count` windows: text from first + i * stride on, kMaxBytes or to its end, at least one
    // byte.
    void merge(Bytes text, uint32_t first, uint32_t stride, uint32_t count, Result* results);

  private:
    static constexpr size_t kLanes = 8;
    static constexpr int kPositionBits = 6;
    static_assert(kMaxBytes == 1u << kPositionBits && kMaxVocabularySize << kPositionBits <= size_t{1} << 30);

    // A doubly linked list of tokens in arrays. The pair that begins at position i has the key rank * 64 + i, or one of
    // at least kNone if it does not merge, so the least key is the leftmost pair of lowest rank.
    static constexpr int32_t kNone = 0x7fffffff - kMaxBytes + 1;
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

    void merge_with_avx2(Bytes text, uint32_t first, uint32_t stride, uint32_t count, Result* results);
    void merge_here(Bytes text, uint32_t first, uint32_t stride, uint32_t count, Result* results);
    void begin(Lane& lane, Bytes bytes, Result* result) const;
    bool take_turn(Lane& lane) const;
    static void set_key(Lane& lane, uint32_t i, uint32_t rank);
    static void finish(const Lane& lane);

    const Vocabulary& vocabulary_;
    std::array<Lane, kLanes> lanes_;
};

}  // namespace fastcompress::bpe
