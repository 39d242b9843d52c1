// The logistic domain in integers: stretch(p) = ln(p / (1 - p)) and its inverse, as tables made by integer recurrences.
//
// A logit is held in units of 1/256 (kLogitOne), a probability in units of 2^-16. Both tables are functions of one
// recurrence (FORMAT.md, "The logistic tables"), so they are the same on every machine and under every compiler.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace fastcompress::context_mixer {

inline constexpr int kLogitOne = 256;
// Logits are in [-kMaxLogit, kMaxLogit], so probabilities are at least 1 / 2982.
inline constexpr int kMaxLogit = 2047;
// The final sum, whose probability the coder is given, may be more certain: it is clamped to this.
inline constexpr int kMaxSum = 2815;

struct LogisticTables {
    std::array<uint16_t, 2 * kMaxSum + 1> squash;  // [x + kMaxSum]: about 2^16 / (1 + exp(-x / 256)), 1 to 65535
    std::array<int16_t, 4096> stretch;             // [p]: the smallest logit x whose squash(x) is at least 16 p
};
extern const LogisticTables kLogistic;

// Returns the probability of a one, in units of 2^-16, 1 to 65535. Requires |x| <= kMaxSum.
inline uint32_t squash(int x) {
    return kLogistic.squash[static_cast<size_t>(x + kMaxSum)];
}
// Returns the logit of a probability in units of 2^-12, 0 to 4095.
inline int stretch(uint32_t p12) {
    return kLogistic.stretch[p12];
}

}  // namespace fastcompress::context_mixer
