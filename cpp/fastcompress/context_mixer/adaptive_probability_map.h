// A last look at a probability: what came of predictions like this one in this context, by interpolation between two of
// 17 points of the logistic domain (adaptive probability map; M. Mahoney, PAQ6, 2004).
#pragma once

#include <algorithm>
#include <cstdint>

#include "fastcompress/common/prefetch.h"
#include "fastcompress/context_mixer/logistic.h"

namespace fastcompress::context_mixer {

inline constexpr int kRefinementStep = 256;  // between points, in logits' units: 16 steps over [-2048, 2048]
inline constexpr int kRefinementPoints = 17;
inline constexpr int kRefinementRate = 6;

struct RefinementRow {
    uint16_t points[kRefinementPoints];  // probabilities of a one, in units of 2^-16

    void clear() {
        for (int i = 0; i < kRefinementPoints; ++i) {
            const int logit = (i - kRefinementPoints / 2) * kRefinementStep;
            points[i] = static_cast<uint16_t>(squash(std::clamp(logit, -kMaxLogit, kMaxLogit)));
        }
    }
    [[gnu::always_inline]] void ask() const {
        prefetch(points);
        prefetch(points + kRefinementPoints - 1);
    }
    // Of a sum of logits; `nearest` is the point to learn from the bit afterwards.
    uint32_t refine(int sum, uint32_t& nearest) const {
        const auto x = static_cast<uint32_t>(std::clamp(sum, -kMaxLogit, kMaxLogit) + kMaxLogit + 1);
        const uint32_t i = x / kRefinementStep;
        const uint32_t weight = x % kRefinementStep;
        nearest = i + (weight >= kRefinementStep / 2 ? 1 : 0);
        return (points[i] * (kRefinementStep - weight) + points[i + 1] * weight) / kRefinementStep;
    }
    void learn(uint32_t nearest, bool bit) {
        const int p = points[nearest];
        points[nearest] = static_cast<uint16_t>(p + (((bit ? 65535 : 0) - p) >> kRefinementRate));
    }
};

}  // namespace fastcompress::context_mixer
