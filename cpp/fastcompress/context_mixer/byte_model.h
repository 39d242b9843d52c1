// One decision of the context mixer: how the bit of a byte is predicted, and what is learned from it. Everything here
// is inlined into the loops of model_coding.cc, which are compiled once for each kind of processor.
//
// Steps (FORMAT.md has the formulas): a context's history of this decision -> its learned probability -> its logit;
// two mixers, whose weights two small contexts select; a mixer of the two; a refinement, averaged with it.
//
// Tried and dropped for speed, a tenth of a percent of the size each: an input of the probability itself beside its
// logit, a context of order 0, a third mixer (selected by the bits so far), a second refinement (of order 1).
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
inline constexpr uint32_t kLog2Refinements = 13;  // rows
// The rate of learning of the mixers, in units of 2^-4: from the first to the last, half of the way after 2^18 bits.
inline constexpr int kFirstRate = 24;
inline constexpr int kLastRate = 4;
inline constexpr int kFinalShift = 16;
inline constexpr int32_t kMaxFinalWeight = 1 << 20;  // 16, in units of 2^-16

// Inputs: logits of the contexts, that of the match and its probability less a half, and a constant.
inline constexpr int kMatchInput = kNumContexts;
inline constexpr int kConstantInput = kMatchInput + 2;
inline constexpr int kNumUsedInputs = kConstantInput + 1;  // the others are zero
static_assert(kNumUsedInputs <= kNumInputs);

// All that is learned except the histories.
struct Learned {
    AdaptiveBit by_history[kNumContexts][256];  // what a history means in a context
    AdaptiveBit by_match[kNumMatchBuckets][2];  // [length][expected bit]
    alignas(64) MixerWeights weights[kMixerRowBegin[kNumMixers]];
    int32_t final_weights[256][kNumMixers];  // in units of 2^-16
    RefinementRow refinements[1 << kLog2Refinements];
    uint64_t num_bytes;  // learned from

    void clear();
    int rate() const {
        const auto parts = static_cast<int>(std::min(num_bytes / 2048, uint64_t{1} << 16));
        return kLastRate + (kFirstRate - kLastRate) * 16 / (16 + parts);
    }
};

// The match as it concerns one decision.
struct MatchInput {
    uint32_t bucket = 0;  // of its length; 0: there is none, or it has failed in this byte
    uint32_t bit = 0;     // that it expects
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

// What a prediction leaves for learning from the bit.
struct Prediction {
    alignas(64) MixerInputs inputs = {};
    uint8_t states[kNumContexts];
    MatchInput match;
    uint32_t rows[kNumMixers];
    int sums[kNumMixers];
    uint32_t probabilities[kNumMixers];
    int final_sum;
    uint32_t final_probability;
    uint32_t refinement, nearest;
    uint32_t partial;  // one, then the bits of the byte so far
};

// Where the histories of this nibble's decisions are.
using SlotPointers = const uint8_t* [kNumContexts];

inline uint32_t refinement_row(uint64_t context, uint32_t partial) {
    const uint32_t hash = static_cast<uint32_t>(context) * 0x9e3779b1u + partial * 0x85ebca6bu;
    return hash >> (32 - kLog2Refinements);
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

// The probability that the next bit is one, in units of 2^-16, 1 to 65535.
FASTCOMPRESS_INLINED uint32_t predict(const Learned& learned, const SlotPointers& slots, uint64_t last,
                                      uint32_t partial, uint32_t node, MatchInput match, Prediction& to) {
    to.partial = partial;
    to.match = match;
    to.refinement = refinement_row(last & 0xffff, partial);
    learned.refinements[to.refinement].ask();
    uint32_t num_seen = 0;  // of the orders 1 to 6
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

    const uint32_t refined = learned.refinements[to.refinement].refine(to.final_sum, to.nearest);
    return std::clamp((to.final_probability + refined + 1) / 2, 1u, 65535u);
}

// Learns from the bit that came after a prediction, except for the histories.
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
    learned.refinements[from.refinement].learn(from.nearest, bit);
}

}  // namespace fastcompress::context_mixer
