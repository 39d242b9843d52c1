// Logistic mixing in integers: a weighted sum of logits, the weights learned online by gradient descent on the coding
// cost (M. Mahoney, "Adaptive weighing of context models for lossless data compression", 2005).
//
// Weights are int32 in units of 2^-30, of which the upper 16 bits enter the sum. So products are exact products of
// int16, for which every processor has SIMD instructions, and steps may still be far below 2^-14.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fastcompress/context_mixer/logistic.h"

#if defined(__GNUC__) && !defined(__clang__)
#define FASTCOMPRESS_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define FASTCOMPRESS_KEEP_LOOP
#endif

namespace fastcompress::context_mixer {

// Two vectors of eight. A sum is at most 16 * 2048 * 2^14 = 2^29. (GCC would
// unroll loops of up to 16 steps before it vectorizes them; FASTCOMPRESS_KEEP_LOOP prevents that.)
inline constexpr int kNumInputs = 16;
inline constexpr int32_t kMaxWeight = 1 << 30;  // one, in units of 2^-30

using MixerWeights = int32_t[kNumInputs];
using MixerInputs = int16_t[kNumInputs];

// Returns the weighted sum, in [-kMaxLogit, kMaxLogit]. Requires |inputs| <= kMaxLogit, or 2048 for inputs that are not
// logits.
[[gnu::always_inline]] inline int mix(const MixerInputs& inputs, const MixerWeights& weights) {
    int32_t sum = 0;
    FASTCOMPRESS_KEEP_LOOP
    for (int i = 0; i < kNumInputs; ++i) sum += inputs[i] * static_cast<int16_t>(weights[i] >> 16);
    return std::clamp(sum >> 14, -kMaxLogit, kMaxLogit);
}

// Moves the weights. `error` is the bit minus the probability of a one, times the rate.
[[gnu::always_inline]] inline void learn(const MixerInputs& inputs, MixerWeights& weights, int16_t error) {
    FASTCOMPRESS_KEEP_LOOP
    for (int i = 0; i < kNumInputs; ++i) {
        const int32_t step = (inputs[i] * error) >> 2;
        weights[i] = std::clamp(weights[i] + step, -kMaxWeight, kMaxWeight);
    }
}

}  // namespace fastcompress::context_mixer
