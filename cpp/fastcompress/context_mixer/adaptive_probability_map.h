// Adaptive probability maps (APM; M. Mahoney, PAQ6, 2004). They correct a probability by the outcomes of similar
// predictions in the same context, interpolating between two of 17 points in the logistic domain.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fastcompress/common/prefetch.h"
#include "fastcompress/context_mixer/logistic.h"

namespace fastcompress::context_mixer {

inline constexpr int kMapStep = 256;  // distance of points, in units of logits: 16 steps over [-2048, 2048]
inline constexpr int kMapPoints = 17;
inline constexpr int kMapRate = 6;

// One row, of one context.
struct AdaptiveProbabilityMap {
    uint16_t points[kMapPoints];  // probabilities of a one, in units of 2^-16

    void clear() {
        for (int i = 0; i < kMapPoints; ++i) {
            const int logit = (i - kMapPoints / 2) * kMapStep;
            points[i] = static_cast<uint16_t>(squash(std::clamp(logit, -kMaxLogit, kMaxLogit)));
        }
    }
    [[gnu::always_inline]] void prefetch_points() const {
        prefetch(points);
        prefetch(points + kMapPoints - 1);
    }
    // Returns the corrected probability of a sum of logits. Sets `nearest` to the point that learn() is to move.
    uint32_t refine(int sum, uint32_t& nearest) const {
        const auto x = static_cast<uint32_t>(std::clamp(sum, -kMaxLogit, kMaxLogit) + kMaxLogit + 1);
        const uint32_t i = x / kMapStep;
        const uint32_t weight = x % kMapStep;
        nearest = i + (weight >= kMapStep / 2 ? 1 : 0);
        return (points[i] * (kMapStep - weight) + points[i + 1] * weight) / kMapStep;
    }
    void learn(uint32_t nearest, bool bit) {
        const int p = points[nearest];
        points[nearest] = static_cast<uint16_t>(p + (((bit ? 65535 : 0) - p) >> kMapRate));
    }
};

}  // namespace fastcompress::context_mixer
