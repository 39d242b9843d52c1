// The learned probability of a bit: at first the average of the bits seen, later an average that forgets old ones.
#pragma once

#include <array>
#include <cstdint>

namespace fastcompress::context_mixer {

// The step after n bits, 2^17 / (2 n + 3) rounded down. The last step is 0: a probability with kFixedCount never
// changes.
inline constexpr uint32_t kFixedCount = 1023;
inline constexpr std::array<uint32_t, kFixedCount + 1> kSteps = [] {
    std::array<uint32_t, kFixedCount + 1> steps{};
    for (uint32_t n = 0; n < kFixedCount; ++n) steps[n] = 131072 / (2 * n + 3);
    return steps;
}();

// The upper 22 bits are the probability of a one, in units of 2^-22; the lower 10 are the number of bits seen.
struct AdaptiveBit {
    uint32_t value;

    static constexpr AdaptiveBit make(uint32_t p22, uint32_t count) { return {p22 << 10 | count}; }
    // The probability in units of 2^-12.
    uint32_t p12() const { return value >> 20; }

    // Learns from a bit. The step stops shrinking after `limit` bits, limit <= 1022.
    void update(bool bit, uint32_t limit) {
        const uint32_t count = value & 1023;
        const int32_t distance = (bit ? (1 << 22) - 1 : 0) - static_cast<int32_t>(value >> 10);
        const int64_t step = (int64_t{distance} * kSteps[count]) >> 16;
        // The probability stays below 2^22 and the count below 2^10, so neither part runs into the other.
        value += (static_cast<uint32_t>(step) << 10) + (count < limit ? 1 : 0);
    }
};

}  // namespace fastcompress::context_mixer
