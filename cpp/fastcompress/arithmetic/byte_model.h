// One decision of the context mixer: how the bit of a byte is predicted, and what is learned from it. Everything here
// is inlined into the loops of coding.cc, which are compiled once for each kind of processor.
//
// Steps (MODELS.md has the formulas): a context's history of this decision -> its learned probability -> two inputs;
// three mixers, whose weights three small contexts select; a mixer of the three; two refinements, averaged with it.
#pragma once

#include <bit>

#include "fastcompress/arithmetic/adaptive_bit.h"
#include "fastcompress/arithmetic/bit_history.h"
#include "fastcompress/arithmetic/contexts.h"
#include "fastcompress/arithmetic/history_table.h"
#include "fastcompress/arithmetic/match_model.h"
#include "fastcompress/arithmetic/mixer.h"
#include "fastcompress/arithmetic/refinement.h"
#include "fastcompress/common/targets.h"

namespace fastcompress::arithmetic {

inline constexpr uint32_t kHistoryLimit = 255;
inline constexpr uint32_t kMatchLimit = 1022;
inline constexpr int kNumMixers = 3;
inline constexpr uint32_t kMixerRows[kNumMixers] = {256, 512, 256};
inline constexpr uint32_t kMixerRowBegin[kNumMixers + 1] = {0, 256, 768, 1024};
inline constexpr uint32_t kNumMatchBuckets = 24;
inline constexpr uint32_t kLog2Rows1 = 14;  // of refinements
inline constexpr uint32_t kLog2Rows2 = 12;
// The rate of learning of the mixers, in units of 2^-4: from the first to the last, half of the way after 2^18 bits.
inline constexpr int kFirstRate = 24;
inline constexpr int kLastRate = 4;
inline constexpr int kFinalShift = 16;
inline constexpr int32_t kMaxFinalWeight = 1 << 20;  // 16, in units of 2^-16

// Inputs: logits of the contexts, their probabilities less a half, the same two of the match, and a constant.
inline constexpr int kMatchInput = 2 * kNumContexts;
inline constexpr int kConstantInput = kMatchInput + 2;
inline constexpr int kNumUsedInputs = kConstantInput + 1;  // the others are zero
static_assert(kNumUsedInputs <= kNumInputs);

// All that is learned except the histories.
struct Learned {
    AdaptiveBit by_history[kNumContexts][256];  // what a history means in a context
    AdaptiveBit by_match[kNumMatchBuckets][2];  // [length][expected bit]
    alignas(64) MixerWeights weights[kMixerRowBegin[kNumMixers]];
    int32_t final_weights[256][kNumMixers];  // in units of 2^-16
    RefinementRow rows1[1 << kLog2Rows1];
    RefinementRow rows2[1 << kLog2Rows2];
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
    uint32_t row1, row2, nearest1, nearest2;
    uint32_t partial;  // one, then the bits of the byte so far
};

// Where the histories of this nibble's decisions are.
using SlotPointers = const uint8_t* [kNumContexts];

inline uint32_t refinement_row(uint64_t context, uint32_t partial, uint32_t log2_rows) {
    const uint32_t hash = static_cast<uint32_t>(context) * 0x9e3779b1u + partial * 0x85ebca6bu;
    return hash >> (32 - log2_rows);
}

FASTCOMPRESS_INLINED void mix_inputs(const Learned& learned, uint64_t last, uint32_t num_seen, Prediction& to) {
    const uint32_t num_bits = static_cast<uint32_t>(std::bit_width(to.partial)) - 1;
    const uint32_t bucket = to.match.bucket;
    const uint32_t match_kind = bucket == 0 ? 0 : bucket < 16 ? 1 + bucket / 8 : bucket < 21 ? 3 : bucket - 17;
    to.rows[0] = to.partial;
    to.rows[1] = kMixerRowBegin[1] + match_kind * 64 + num_seen * 8 + num_bits;
    to.rows[2] = kMixerRowBegin[2] + static_cast<uint32_t>(last & 255);
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
    to.row1 = refinement_row(last & 0xff, partial, kLog2Rows1);
    to.row2 = refinement_row(last & 0xffff, partial, kLog2Rows2);
    learned.rows1[to.row1].ask();
    learned.rows2[to.row2].ask();
    uint32_t num_seen = 0;  // of the orders 1 to 6
    for (int i = 0; i < kNumContexts; ++i) {
        const uint8_t state = slots[i][node];
        to.states[i] = state;
        const uint32_t p = learned.by_history[i][state].p12();
        to.inputs[i] = static_cast<int16_t>(stretch(p));
        to.inputs[kNumContexts + i] = static_cast<int16_t>(static_cast<int>(p) - 2048);
        num_seen += i >= 1 && i < kNumOrders && state != 0 ? 1 : 0;
    }
    const uint32_t match_p = match.bucket == 0 ? 2048 : learned.by_match[match.bucket][match.bit].p12();
    to.inputs[kMatchInput] = static_cast<int16_t>(stretch(match_p));
    to.inputs[kMatchInput + 1] = static_cast<int16_t>(static_cast<int>(match_p) - 2048);
    to.inputs[kConstantInput] = kLogitOne;
    mix_inputs(learned, last, num_seen, to);

    const uint32_t p1 = learned.rows1[to.row1].refine(to.final_sum, to.nearest1);
    const uint32_t p2 = learned.rows2[to.row2].refine(to.final_sum, to.nearest2);
    return std::clamp((2 * to.final_probability + p1 + p2 + 2) / 4, 1u, 65535u);
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
    learned.rows1[from.row1].learn(from.nearest1, bit);
    learned.rows2[from.row2].learn(from.nearest2, bit);
}

}  // namespace fastcompress::arithmetic
