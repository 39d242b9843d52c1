// Bit histories: what has been seen of one binary decision, in one byte. They count zeros and ones, small numbers
// exactly and large ones roughly, and in short histories remember the last bit.
//
// A history is a pair of counts (zeros, ones) within bounds, and the last bit. A bit adds one to its own count and
// takes away part of what the other count exceeds two by, so recent bits weigh more. Histories are numbered by zeros +
// ones, so the smaller of two numbers has seen no more. The rules are in FORMAT.md, "Bit histories". Bit histories are
// M. Mahoney's idea (PAQ, from 2002); these states are our own.
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
