// From weights to frequencies the range coder can use: at least 1 each, 2^P in all, by integer arithmetic with stated rounding.
//
// For V weights, of which the greatest is not zero:
//   1. w'_i = floor(w_i 2^s), with the s (of either sign) that brings the greatest into [2^30, 2^31);
//   2. m = floor((2^P - V) 2^37 / sum of w'), and f_i = 1 + floor(w'_i m / 2^37);
//   3. what is missing from 2^P (less than V + 1) goes to the first of the greatest.
// Every step is exact for integers below 2^64 and for floats alike: scaling a float by a power of two loses nothing that
// step 1 keeps. So a table depends on the weights alone, and integers and floats of equal value give equal tables.
//
// Rounding: 2^P - V shares are dealt out in proportion, each rounded down with an error below 1 + 2^-6; see FORMAT.md.
//
// Kernels are plain loops that compilers turn into vector code, compiled for AVX2 and AVX-512, too (common/targets.h); a row of 256
// floats takes some 50 ns with AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/status.h"

namespace fastcompress::arithmetic {

// A symbol is a number below 2^23, so that with 24 bits half of the total is still left to deal out.
inline constexpr size_t kMaxSymbols = size_t{1} << 23;

// max(16, ceil(log2 V) + 8), at most 24: 8 bits of choice for the average symbol.
unsigned default_precision(size_t num_symbols);

// What is wrong with an alphabet size and a precision, if anything is.
std::optional<Status> check_table_size(size_t num_symbols, unsigned precision);

// Cumulative frequencies: 0 first, increasing, 2^P (P <= kMaxPrecision) last. The P, or what is wrong. O(V).
Result<unsigned> check_cumulative(std::span<const uint32_t> cumulative);

// Weights of several kinds, quantized row by row with scratch memory that is kept.
class Quantizer {
  public:
    // check_table_size() has passed.
    Quantizer(size_t num_symbols, unsigned precision)
        : num_symbols_(num_symbols), precision_(precision), scaled_(num_symbols), frequencies_(num_symbols) {}

    size_t num_symbols() const { return num_symbols_; }
    unsigned precision() const { return precision_; }

    // Makes `weights` (num_symbols of them: floats, or unsigned or signed integers) the current row, or says what is wrong
    // with them: a NaN, infinite or negative one, or all zero. O(V).
    template <class Weight>
    std::optional<Status> set_row(const Weight* weights);
    // The same from logarithms to base 2 in units of 2^-16: weight 2^(l / 2^16). All rows are good.
    void set_row_of_logits(const int32_t* logits);

    // Of the current row. O(V).
    void cumulative(uint32_t* out) const;  // V + 1 numbers
    struct Slot {
        uint32_t cumulative;
        uint32_t frequency;
    };
    Slot slot(size_t symbol) const;
    // The symbol whose part of [0, 2^P) holds the quantile.
    size_t find(uint32_t quantile, Slot& slot) const;

  private:
    void deal(uint32_t greatest);  // of scaled_

    size_t num_symbols_;
    unsigned precision_;
    HugeArray<uint32_t> scaled_;       // w'
    HugeArray<uint32_t> frequencies_;  // f
};

}  // namespace fastcompress::arithmetic
