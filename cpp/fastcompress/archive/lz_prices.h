// What literals and fields of a parse will cost, by an earlier parse of the same text: in units of 1/256 bit, integers
// only.
//
// A literal costs what it would have at its index, by models that have seen the earlier parse's literals before it.
// (Prices by how often a byte followed another in the whole parse were tried first, and led to larger files.) A field
// costs by how often it occurred.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fastcompress/archive/lz_fields.h"

namespace fastcompress::archive {

inline constexpr uint32_t kBit = 256;

// 256 log2(x), x >= 1, rounded down to what 12 leading bits of x say.
uint32_t log2_of(uint32_t x);

// Whether it pays to model the last four bits of distances.
bool pays_to_model_low_bits(const std::vector<Sequence>& sequences);

class Prices {
  public:
    static constexpr uint32_t kMostLength = 288;  // longer lengths cost as much as this one
    static constexpr uint32_t kMostRun = 64;

    // By a parse of the text; literals are charged literal_tax more.
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
