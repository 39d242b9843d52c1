// The fields that the method "lz" codes: sequences, each of literals and a match, as symbols of 4 bits and extra bits.
// FORMAT.md defines them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/repeat_offsets.h"

namespace fastcompress::archive {

using lz77::kNumRepeatOffsets;
using lz77::RepeatOffsets;

// num_literals literal bytes, followed by a match. The last sequence of a block has length 0, that is, no match.
struct Sequence {
    uint32_t num_literals;
    uint32_t length;
    uint32_t distance;
};

inline constexpr uint32_t kMinLength = 2;

// A number below 15 is one symbol. Others are the symbol 15 and an escape: a bucket symbol and its extra bits.
//   14 is the symbol 14; 15 + 9 = 24 is the symbols 15 and 8 and two extra bits for 9 - 8 = 1
inline constexpr std::array<uint8_t, 16> kEscapeBits = {0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 6, 8, 12, 20, 30};
inline constexpr std::array<uint32_t, 17> kEscapeBase = [] {
    std::array<uint32_t, 17> base{};
    for (size_t i = 0; i < 16; ++i) base[i + 1] = base[i] + (uint32_t{1} << kEscapeBits[i]);
    return base;
}();
inline unsigned escape_bucket(uint32_t rest) {
    unsigned bucket = 0;
    while (rest >= kEscapeBase[bucket + 1]) ++bucket;
    return bucket;
}

// The symbol for the source of a match: 0 to 3 is a repeat offset, 4 + c a new distance of class c. Class c has 16 *
// 4^c distances: a slot symbol selects one sixteenth of them, and 2 c bits select the distance in it.
inline constexpr unsigned kNumClasses = 12;
inline constexpr std::array<uint32_t, kNumClasses + 1> kClassBase = [] {
    std::array<uint32_t, kNumClasses + 1> base{};
    base[0] = 1;
    for (unsigned c = 0; c < kNumClasses; ++c) base[c + 1] = base[c] + (uint32_t{16} << (2 * c));
    return base;
}();
inline unsigned distance_class(uint32_t distance) {
    // Class c begins at 1 + 16 (4^c - 1) / 3, so 3 (d - 1) / 16 + 1 is in [4^c, 4^(c + 1)).
    return (static_cast<unsigned>(std::bit_width(3 * uint64_t{distance - 1} / 16 + 1)) - 1) / 2;
}

}  // namespace fastcompress::archive
