// The probability of a bit, learned: the average of what was seen at first, and later one that forgets.
#pragma once

#include <array>
#include <cstdint>

namespace fastcompress::context_mixer {

// 2^17 / (2 n + 3), rounded down: the step after n bits. The last one is none: a probability with that count stays.
inline constexpr uint32_t kFixedCount = 1023;
inline constexpr std::array<uint32_t, kFixedCount + 1> kSteps = [] {
    std::array<uint32_t, kFixedCount + 1> steps{};
    for (uint32_t n = 0; n < kFixedCount; ++n) steps[n] = 131072 / (2 * n + 3);
    return steps;
}();

// The probability of a one in units of 2^-22 in the upper 22 bits, how many bits were seen in the lower 10.
struct AdaptiveBit {
    uint32_t value;

    static constexpr AdaptiveBit make(uint32_t p22, uint32_t count) { return {p22 << 10 | count}; }
    // In units of 2^-12.
    uint32_t p12() const { return value >> 20; }

    // limit <= 1022: the step grows no smaller than that after so many bits.
    void update(bool bit, uint32_t limit) {
        const uint32_t count = value & 1023;
        const int32_t distance = (bit ? (1 << 22) - 1 : 0) - static_cast<int32_t>(value >> 10);
        const int64_t step = (int64_t{distance} * kSteps[count]) >> 16;
        // The probability stays below 2^22 and the count below 2^10, so neither part runs into the other.
        value += (static_cast<uint32_t>(step) << 10) + (count < limit ? 1 : 0);
    }
};

}  // namespace fastcompress::context_mixer
