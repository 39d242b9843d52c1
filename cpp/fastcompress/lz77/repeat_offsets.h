// Repeat offsets: the last four different distances of matches, the latest first. A code can refer to one of them
// instead of writing a distance (FORMAT.md, "Buckets", and the method "lz" of archive/FORMAT.md).
#pragma once

#include <array>
#include <cstdint>

namespace fastcompress::lz77 {

inline constexpr uint32_t kNumRepeatOffsets = 4;

struct RepeatOffsets {
    std::array<uint32_t, kNumRepeatOffsets> values = {1, 2, 3, 4};

    uint32_t operator[](size_t i) const { return values[i]; }
    // Returns the index of a distance, or kNumRepeatOffsets if it is not among them.
    uint32_t find(uint32_t distance) const {
        uint32_t i = 0;
        while (i < kNumRepeatOffsets && values[i] != distance) ++i;
        return i;
    }
    // Moves the distance at index i to the front; if i is kNumRepeatOffsets, inserts a new one there and drops the
    // last.
    void use(uint32_t i, uint32_t distance) {
        for (uint32_t k = i < kNumRepeatOffsets ? i : kNumRepeatOffsets - 1; k > 0; --k) values[k] = values[k - 1];
        values[0] = distance;
    }
};

}  // namespace fastcompress::lz77
