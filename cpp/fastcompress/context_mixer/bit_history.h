// Bit histories: one byte that summarizes the bits seen in one binary decision. It counts zeros and ones, small numbers
// exactly and large ones approximately, and short histories also store the last bit.
//
// A history is a pair of counts (zeros, ones) within bounds, and the last bit. A bit adds one to its own count and
// reduces the part of the other count above two, so recent bits weigh more. Histories are numbered in order of zeros +
// ones, so a smaller number never means more bits. FORMAT.md, "Bit histories", has the rules. Bit histories are due to
// M. Mahoney (PAQ, from 2002); these states are new.
//   12 zeros, then a one: 6 zeros, 1 one, last bit 1, because the 10 zeros above two are reduced to 4
#pragma once

#include <array>
#include <cstdint>

namespace fastcompress::context_mixer {

struct BitHistory {
    uint8_t zeros, ones, last;
};

struct BitHistoryTables {
    std::array<BitHistory, 256> histories;
    std::array<std::array<uint8_t, 2>, 256> next;  // [history][bit]
    int size;                                      // number of histories
};
extern const BitHistoryTables kBitHistories;

}  // namespace fastcompress::context_mixer
