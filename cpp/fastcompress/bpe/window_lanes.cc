#include "fastcompress/bpe/window_lanes.h"

#include <algorithm>

// Compiled twice, so all of it is inlined into merge().
#if defined(__GNUC__)
#define FASTCOMPRESS_INLINED __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define FASTCOMPRESS_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#endif
#else
#define FASTCOMPRESS_INLINED inline
#endif

namespace fastcompress::bpe {

FASTCOMPRESS_INLINED void WindowLanes::set_key(Lane& lane, uint32_t i, uint32_t rank) {
    lane.keys[i] = static_cast<int32_t>((rank << kPositionBits | i) & 0x7fffffffu);  // of kNoRank: kNone + i
}

FASTCOMPRESS_INLINED void WindowLanes::begin(Lane& lane, Bytes bytes, Result* result) const {
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

// Merges the next pair; false if none merges.
FASTCOMPRESS_INLINED bool WindowLanes::take_turn(Lane& lane) const {
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
    if (least >= kNone) return false;
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

FASTCOMPRESS_INLINED void WindowLanes::finish(const Lane& lane) {
    Result& result = *lane.result;
    uint32_t count = 0;
    for (uint32_t i = 0; i < lane.size; i = lane.next[i]) {
        result.ids[count] = lane.ids[i];
        result.ends[count++] = lane.next[i];
    }
    result.count = count;
}

FASTCOMPRESS_INLINED void WindowLanes::merge_here(Bytes text, uint32_t first, uint32_t stride, uint32_t count,
                                                  Result* results) {
    const auto begin_window = [&](Lane& lane, uint32_t i) {
        const size_t offset = size_t{first} + size_t{i} * stride;
        begin(lane, text.subspan(offset, std::min<size_t>(kMaxBytes, text.size() - offset)), results + i);
    };
    uint32_t num_begun = 0;
    size_t num_active = 0;
    while (num_active < kLanes && num_begun < count) begin_window(lanes_[num_active++], num_begun++);
    while (num_active > 0) {
        for (size_t k = 0; k < num_active;) {
            Lane& lane = lanes_[k];
            if (take_turn(lane)) {
                ++k;
                continue;
            }
            finish(lane);
            if (num_begun < count) {
                begin_window(lane, num_begun++);
                ++k;
            } else if (--num_active != k) {
                lane = lanes_[num_active];
            }
        }
    }
}

#if defined(FASTCOMPRESS_AVX2)
FASTCOMPRESS_AVX2 void WindowLanes::merge_with_avx2(Bytes text, uint32_t first, uint32_t stride, uint32_t count,
                                                    Result* results) {
    merge_here(text, first, stride, count, results);
}
#endif

void WindowLanes::merge(Bytes text, uint32_t first, uint32_t stride, uint32_t count, Result* results) {
#if defined(FASTCOMPRESS_AVX2)
    static const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (has_avx2) return merge_with_avx2(text, first, stride, count, results);
#endif
    merge_here(text, first, stride, count, results);
}

}  // namespace fastcompress::bpe
