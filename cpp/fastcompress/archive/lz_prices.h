// Estimates the prices of literals and fields from an earlier parse of the same text, in integer units of 1/256 bit.
//
// The price of a literal is its cost at its position under models that have learned from the literals of the earlier
// parse before it. The price of a field depends on the number of times that it occurred.
//
// Tried and dropped: prices of literals by the number of times that a byte followed another in the whole parse (larger
// files).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fastcompress/archive/lz_fields.h"

namespace fastcompress::archive {

inline constexpr uint32_t kBit = 256;

// Returns 256 log2(x), x >= 1, computed from the 12 leading bits of x and rounded down.
uint32_t log2_of(uint32_t x);

// Returns whether modelling the last four bits of distances saves space.
bool pays_to_model_low_bits(const std::vector<Sequence>& sequences);

class Prices {
  public:
    static constexpr uint32_t kMostLength = 288;  // longer lengths cost as much as this one
    static constexpr uint32_t kMostRun = 64;

    // Computes prices from a parse of the text. Adds literal_tax to the price of each literal.
    Prices(Bytes text, const std::vector<Sequence>& sequences, uint32_t literal_tax);

    uint32_t literal(size_t position) const { return literal_[position]; }
    uint32_t run(uint32_t num_literals) const { return run_[num_literals < kMostRun ? num_literals : kMostRun]; }
    uint32_t repeat(bool after_match, unsigned index) const { return kind_[after_match][index]; }
    uint32_t distance(bool after_match, uint32_t distance, unsigned distance_class) const {
        const uint32_t offset = distance - kClassBase[distance_class];
        const unsigned slot = offset >> (2 * distance_class);
        uint32_t price = kind_[after_match][kNumRepeatOffsets + distance_class] + slot_[distance_class][slot];
        if (distance_class >= 2) {
            price += (2 * distance_class - 4) * kBit + low_[offset & 15];
        } else {
            price += 2 * distance_class * kBit;
        }
        return price;
    }
    const uint32_t* lengths(unsigned kind) const { return length_[kind].data(); }

  private:
    std::vector<uint16_t> literal_;
    std::array<uint32_t, kMostRun + 1> run_;
    std::array<std::array<uint32_t, 16>, 2> kind_;
    std::array<std::array<uint32_t, 16>, kNumClasses> slot_;
    std::array<uint32_t, 16> low_;
    std::array<std::array<uint32_t, kMostLength + 1>, 16> length_;
};

}  // namespace fastcompress::archive
