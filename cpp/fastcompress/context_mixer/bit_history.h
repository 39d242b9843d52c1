// What has been seen of one binary decision, in a byte: how often zero and one came, small numbers exactly and large
// ones roughly, and of short histories which came last.
//
// A history is a pair of counts (zeros, ones) within bounds, and the last bit. A bit adds one to its own count and
// takes from the other what exceeds two, in part: what came lately counts more. Histories are numbered by zeros + ones,
// so that of two numbers the smaller has seen less. The rules are in FORMAT.md, "Bit histories"; the idea of bit
// histories is M. Mahoney's (PAQ, 2002 on), the states are not.
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
    int size;                                      // how many histories there are
};
extern const BitHistoryTables kBitHistories;

}  // namespace fastcompress::context_mixer
