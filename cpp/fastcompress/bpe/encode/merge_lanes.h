// Merges several byte strings of up to kMaxBytes bytes side by side: short pretokens, or windows of long ones.
//
// Merging one string is a chain of look-ups in the pair table, each of which waits for memory and decides the next: two
// thirds of the time nothing else happens. Here up to kLanes strings take turns. A round of turns has two halves, each
// done for all lanes before the next half begins:
//   look up  find the two pairs that the last merge made (their memory was asked for a round ago), and store their keys
//   choose   find the lowest key by vector instructions, merge that pair, and ask for the memory of the two pairs it makes
// The halves are apart because a vector load waits for scalar stores to the same bytes: by the time a lane chooses, what
// it has stored has left the store buffer. Within a turn nothing depends on a guess except whether it is the last one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/common/targets.h"

namespace fastcompress::bpe {

template <uint32_t kMaxBytes>
class MergeLanes {
  public:
    explicit MergeLanes(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    // For each of `count` strings of 1 to kMaxBytes bytes, bytes_of(i), calls done(i, ids, ends), in any order: its ids
    // by merges alone, and before which of its bytes each of them ends.
    template <class BytesOf, class Done>
    void merge(size_t count, const BytesOf& bytes_of, const Done& done) {
#if defined(FASTCOMPRESS_AVX2)
        if (has_avx2()) return merge_with_avx2(count, bytes_of, done);
#endif
        merge_here(count, bytes_of, done);
    }

  private:
    static constexpr size_t kLanes = 24;
    static constexpr int kPositionBits = std::countr_zero(kMaxBytes);
    static_assert(std::has_single_bit(kMaxBytes) && kMaxBytes <= 64);
    static_assert(kMaxVocabularySize << kPositionBits <= size_t{1} << 30);

    // The pair of tokens that begins at position i has the key rank * kMaxBytes + i, or kNone + i if it does not merge:
    // so the lowest key is the leftmost pair of lowest rank.
    static constexpr int32_t kNone = 0x7fffffff - kMaxBytes + 1;
    struct Lane {
        alignas(64) std::array<int32_t, kMaxBytes> keys;
        std::array<TokenId, kMaxBytes + 1> ids;  // of the token that begins at a position; one more may be read
        uint64_t starts;                         // bit i: a token begins at position i
        uint64_t end;                            // bit `size`; 0 if size is 64
        uint32_t size;
        // What the last merge made: a token at `merged`, and pairs of it with the tokens before and after it. If there is
        // no such token the mask is 0, else all ones.
        uint32_t merged;
        uint32_t before;
        uint32_t before_mask;
        uint32_t after_mask;
        PairTable::Location before_pair;
        PairTable::Location after_pair;
        size_t index;
    };

    FASTCOMPRESS_INLINED static int32_t key_of(uint32_t rank_plus_one, uint32_t i) {
        return static_cast<int32_t>(((rank_plus_one - 1) << kPositionBits | i) & 0x7fffffffu);
    }

    FASTCOMPRESS_INLINED void begin(Lane& lane, size_t index, Bytes bytes) const {
        const auto size = static_cast<uint32_t>(bytes.size());
        lane.index = index;
        lane.size = size;
        lane.starts = ~uint64_t{0} >> (64 - size);
        lane.end = ~lane.starts & (lane.starts + 1);
        lane.keys.fill(kNone);
        for (uint32_t i = 0; i + 1 < size; ++i) {
            lane.ids[i] = vocabulary_.byte_token(bytes[i]);
            lane.keys[i] = key_of(vocabulary_.find_byte_rank(bytes[i], bytes[i + 1]) + 1, i);
        }
        lane.ids[size - 1] = vocabulary_.byte_token(bytes[size - 1]);
        lane.ids[size] = 0;
        lane.merged = lane.before = size - 1;  // whose key stays kNone
        lane.before_mask = lane.after_mask = 0;
        lane.before_pair = lane.after_pair = {0, 0};
    }

    FASTCOMPRESS_INLINED void look_up(Lane& lane) const {
        const PairTable& pairs = vocabulary_.pairs();
        const uint32_t before_rank = (pairs.find(lane.before_pair) + 1) & lane.before_mask;
        const uint32_t after_rank = (pairs.find(lane.after_pair) + 1) & lane.after_mask;
        lane.keys[lane.before] = key_of(before_rank, lane.before);  // first: with nothing before, `before` is `merged`
        lane.keys[lane.merged] = key_of(after_rank, lane.merged);
    }

    // The lowest key of all positions.
    FASTCOMPRESS_INLINED static int32_t lowest_key(const Lane& lane) {
#if defined(__GNUC__)
        // By hand, since GCC turns a loop over 16 keys into a chain of 15 steps.
        using Keys = int32_t __attribute__((vector_size(16), may_alias));
        const auto* keys = reinterpret_cast<const Keys*>(lane.keys.data());
        const auto lesser = [](Keys a, Keys b) { return a < b ? a : b; };
        Keys lowest[2] = {keys[0], keys[1]};
        for (size_t i = 2; i < kMaxBytes / 4; ++i) lowest[i % 2] = lesser(lowest[i % 2], keys[i]);
        lowest[0] = lesser(lowest[0], lowest[1]);
        lowest[0] = lesser(lowest[0], __builtin_shufflevector(lowest[0], lowest[0], 2, 3, 0, 1));
        return std::min(lowest[0][0], lowest[0][1]);
#else
        return *std::ranges::min_element(lane.keys);
#endif
    }

    // Merges the next pair; false if none merges.
    FASTCOMPRESS_INLINED bool choose(Lane& lane) const {
        const int32_t lowest = lowest_key(lane);
        if (lowest >= kNone) return false;
        const uint32_t i = static_cast<uint32_t>(lowest) % kMaxBytes;
        const uint64_t right = lane.starts & ~uint64_t{1} << i;  // starts of the tokens to the right
        const uint64_t rest = right & (right - 1);               // without the one that is merged
        lane.starts ^= right ^ rest;
        lane.keys[static_cast<uint32_t>(std::countr_zero(right))] = kNone;
        const auto after = static_cast<uint32_t>(std::countr_zero(rest | lane.end));
        const uint64_t left = (lane.starts & ((uint64_t{1} << i) - 1)) | 1;
        const uint32_t before = 63 - static_cast<uint32_t>(std::countl_zero(left));
        const TokenId id = vocabulary_.merge_result(static_cast<uint32_t>(lowest) >> kPositionBits);

        const PairTable& pairs = vocabulary_.pairs();
        lane.before_pair = pairs.locate(lane.ids[before], id);
        lane.after_pair = pairs.locate(id, lane.ids[after]);
        pairs.prefetch(lane.before_pair);
        pairs.prefetch(lane.after_pair);
        lane.ids[i] = id;
        lane.merged = i;
        lane.before = before;
        lane.before_mask = i > 0 ? ~uint32_t{0} : 0;
        lane.after_mask = after < lane.size ? ~uint32_t{0} : 0;
        return true;
    }

    template <class Done>
    FASTCOMPRESS_INLINED static void finish(const Lane& lane, const Done& done) {
        std::array<TokenId, kMaxBytes> ids;
        std::array<uint8_t, kMaxBytes> ends;
        size_t count = 0;
        for (uint64_t starts = lane.starts; starts != 0; ++count) {
            ids[count] = lane.ids[static_cast<size_t>(std::countr_zero(starts))];
            starts &= starts - 1;
            ends[count] = static_cast<uint8_t>(std::min(static_cast<uint32_t>(std::countr_zero(starts)), lane.size));
        }
        done(lane.index, std::span<const TokenId>(ids.data(), count), std::span<const uint8_t>(ends.data(), count));
    }

    template <class BytesOf, class Done>
    FASTCOMPRESS_INLINED void merge_here(size_t count, const BytesOf& bytes_of, const Done& done) {
        size_t next = 0;
        size_t num_active = 0;
        const auto begin_next = [&](Lane& lane) {
            begin(lane, next, bytes_of(next));
            ++next;
        };
        while (num_active < kLanes && next < count) begin_next(lanes_[num_active++]);
        while (num_active > 0) {
            for (size_t k = 0; k < num_active; ++k) look_up(lanes_[k]);
            for (size_t k = 0; k < num_active;) {
                Lane& lane = lanes_[k];
                if (choose(lane)) {
                    ++k;
                    continue;
                }
                finish(lane, done);
                if (next < count) {
                    begin_next(lane);
                    ++k;
                } else if (--num_active != k) {
                    lane = lanes_[num_active];
                }
            }
        }
    }
#if defined(FASTCOMPRESS_AVX2)
    template <class BytesOf, class Done>
    FASTCOMPRESS_AVX2 void merge_with_avx2(size_t count, const BytesOf& bytes_of, const Done& done) {
        merge_here(count, bytes_of, done);
    }
#endif

    const Vocabulary& vocabulary_;
    std::array<Lane, kLanes> lanes_;
};

}  // namespace fastcompress::bpe
