// One decision of the context mixer: predicts a bit of a byte, and learns from it. Everything here is inlined into the
// loops of model_coding.cc, which are compiled once per instruction set.
//
// Algorithm (FORMAT.md has the formulas). Each of nine contexts has a history of this decision; a table maps the
// history to a learned probability, and that to its logit. Two mixers, whose weights are selected by two small
// contexts, sum the logits; a third mixes the two sums; an adaptive probability map corrects the result, and the two
// are averaged.
//
// Example: a new model has learned "aba" and knows that the next byte begins with the bit 0. Only the context "a" has
// seen this decision, and once: a one, in "b" (0x62).
//   history of order 1   no zero, one one           -> probability 3072 / 4096 -> logit 282 / 256
//   the other histories  nothing seen               -> probability 1/2         -> logit 0
//   mixers               weights of about 1/4       -> sums 70 and 69 (the second has learned more)
//   final mixer          weights of about 1/2       -> sum 69 -> probability 37157 / 65536
//   probability map      36849, averaged with that  -> p = 37003 / 65536
// The bit is a one, as in "b", and costs -log2(p) = 0.82 bits. Then everything learns: the history becomes two ones,
// its probability rises to 0.92, the weight of order 1 grows in both mixers, and the nearest point of the map moves up.
//
// Tried and dropped for speed; each saved a tenth of a percent of the size: the probability as an input beside its
// logit, a context of order 0, a third mixer (selected by the bits so far), a second probability map (of order 1).
#pragma once

#include <bit>

#include "fastcompress/common/targets.h"
#include "fastcompress/context_mixer/adaptive_bit.h"
#include "fastcompress/context_mixer/adaptive_probability_map.h"
#include "fastcompress/context_mixer/bit_history.h"
#include "fastcompress/context_mixer/contexts.h"
#include "fastcompress/context_mixer/history_table.h"
#include "fastcompress/context_mixer/match_model.h"
#include "fastcompress/context_mixer/mixer.h"

namespace fastcompress::context_mixer {

inline constexpr uint32_t kHistoryLimit = 255;
inline constexpr uint32_t kMatchLimit = 1022;
inline constexpr int kNumMixers = 2;
inline constexpr uint32_t kMixerRowBegin[kNumMixers + 1] = {0, 512, 768};
inline constexpr uint32_t kNumMatchBuckets = 24;
inline constexpr uint32_t kLog2MapRows = 13;
// Learning rate of the mixers, in units of 2^-4. It falls from the first to the last, half of the way after 2^18 bits.
inline constexpr int kFirstRate = 24;
inline constexpr int kLastRate = 4;
inline constexpr int kFinalShift = 16;
inline constexpr int32_t kMaxFinalWeight = 1 << 20;  // 16, in units of 2^-16

// Inputs: the logits of the contexts, the logit of the match, the match's probability minus 1/2, and a constant.
inline constexpr int kMatchInput = kNumContexts;
inline constexpr int kConstantInput = kMatchInput + 2;
inline constexpr int kNumUsedInputs = kConstantInput + 1;  // the others are zero
static_assert(kNumUsedInputs <= kNumInputs);

// Everything that a model learns, except the histories.
struct Learned {
    AdaptiveBit by_history[kNumContexts][256];  // the probability that a history means in a context
    AdaptiveBit by_match[kNumMatchBuckets][2];  // [length][expected bit]
    alignas(64) MixerWeights weights[kMixerRowBegin[kNumMixers]];
    int32_t final_weights[256][kNumMixers];  // in units of 2^-16
    AdaptiveProbabilityMap maps[1 << kLog2MapRows];
    uint64_t num_bytes;  // bytes learned

    void clear();
    int rate() const {
        const auto parts = static_cast<int>(std::min(num_bytes / 2048, uint64_t{1} << 16));
        return kLastRate + (kFirstRate - kLastRate) * 16 / (16 + parts);
    }
};

// What the match says about one decision.
struct MatchInput {
    uint32_t bucket = 0;  // of the match's length; 0: no match, or it has failed in this byte
    uint32_t bit = 0;     // the bit that the match expects
};
inline uint32_t match_bucket(uint32_t length) {
    if (length < 16) return length;
    if (length < 32) return 16 + (length - 16) / 4;
    return length < 64 ? 20 : length < 512 ? 21 : 22;
}
inline MatchInput match_input(uint32_t length, uint32_t expected, uint32_t partial) {
    if (length == 0) return {};
    const auto num_bits = static_cast<uint32_t>(std::bit_width(partial)) - 1;
    if ((expected | 256) >> (8 - num_bits) != partial) return {};
    return {match_bucket(length), expected >> (7 - num_bits) & 1};
}

// The intermediate results of a prediction, from which learn() learns.
struct Prediction {
    alignas(64) MixerInputs inputs = {};
    uint8_t states[kNumContexts];
    MatchInput match;
    uint32_t rows[kNumMixers];
    int sums[kNumMixers];
    uint32_t probabilities[kNumMixers];
    int final_sum;
    uint32_t final_probability;
    uint32_t map, nearest;  // the row of the probability map, and the point nearest to the final sum
    uint32_t partial;       // one, then the bits of the byte so far
};

// For each context, the histories of this nibble's decisions.
using SlotPointers = const uint8_t* [kNumContexts];

inline uint32_t map_row(uint64_t context, uint32_t partial) {
    const uint32_t hash = static_cast<uint32_t>(context) * 0x9e3779b1u + partial * 0x85ebca6bu;
    return hash >> (32 - kLog2MapRows);
}

FASTCOMPRESS_INLINED void mix_inputs(const Learned& learned, uint64_t last, uint32_t num_seen, Prediction& to) {
    const uint32_t num_bits = static_cast<uint32_t>(std::bit_width(to.partial)) - 1;
    const uint32_t bucket = to.match.bucket;
    const uint32_t match_kind = bucket == 0 ? 0 : bucket < 16 ? 1 + bucket / 8 : bucket < 21 ? 3 : bucket - 17;
    to.rows[0] = kMixerRowBegin[0] + match_kind * 64 + num_seen * 8 + num_bits;
    to.rows[1] = kMixerRowBegin[1] + static_cast<uint32_t>(last & 255);
    int64_t sum = 0;
    for (int k = 0; k < kNumMixers; ++k) {
        to.sums[k] = mix(to.inputs, learned.weights[to.rows[k]]);
        to.probabilities[k] = squash(to.sums[k]);
        sum += int64_t{learned.final_weights[to.partial][k]} * to.sums[k];
    }
    to.final_sum = static_cast<int>(std::clamp<int64_t>(sum >> 16, -kMaxSum, kMaxSum));
    to.final_probability = squash(to.final_sum);
}

// Returns the probability that the next bit is one, in units of 2^-16, 1 to 65535.
FASTCOMPRESS_INLINED uint32_t predict(const Learned& learned, const SlotPointers& slots, uint64_t last,
                                      uint32_t partial, uint32_t node, MatchInput match, Prediction& to) {
    to.partial = partial;
    to.match = match;
    to.map = map_row(last & 0xffff, partial);
    learned.maps[to.map].prefetch_points();
    uint32_t num_seen = 0;  // contexts of orders 1 to 6 that have seen this decision
    for (int i = 0; i < kNumContexts; ++i) {
        const uint8_t state = slots[i][node];
        to.states[i] = state;
        const uint32_t p = learned.by_history[i][state].p12();
        to.inputs[i] = static_cast<int16_t>(stretch(p));
        num_seen += i < kNumOrders && state != 0 ? 1 : 0;
    }
    const uint32_t match_p = match.bucket == 0 ? 2048 : learned.by_match[match.bucket][match.bit].p12();
    to.inputs[kMatchInput] = static_cast<int16_t>(stretch(match_p));
    to.inputs[kMatchInput + 1] = static_cast<int16_t>(static_cast<int>(match_p) - 2048);
    to.inputs[kConstantInput] = kLogitOne;
    mix_inputs(learned, last, num_seen, to);

    const uint32_t refined = learned.maps[to.map].refine(to.final_sum, to.nearest);
    return std::clamp((to.final_probability + refined + 1) / 2, 1u, 65535u);
}

// Learns from the bit that followed a prediction. The caller updates the histories.
FASTCOMPRESS_INLINED void learn(Learned& learned, const Prediction& from, int rate, bool bit) {
    const int target = bit ? 65536 : 0;
    const int final_error = target - (bit ? 1 : 0) - static_cast<int>(from.final_probability);
    int32_t* const final_weights = learned.final_weights[from.partial];
    for (int k = 0; k < kNumMixers; ++k) {
        const int32_t step = (from.sums[k] * final_error) >> kFinalShift;
        final_weights[k] = std::clamp(final_weights[k] + step, -kMaxFinalWeight, kMaxFinalWeight);
        const int error = (target - static_cast<int>(from.probabilities[k])) * rate >> 4;
        learn(from.inputs, learned.weights[from.rows[k]], static_cast<int16_t>(std::clamp(error, -32768, 32767)));
    }
    for (int i = 0; i < kNumContexts; ++i) learned.by_history[i][from.states[i]].update(bit, kHistoryLimit);
    if (from.match.bucket > 0) learned.by_match[from.match.bucket][from.match.bit].update(bit, kMatchLimit);
    learned.maps[from.map].learn(from.nearest, bit);
}

}  // namespace fastcompress::context_mixer
