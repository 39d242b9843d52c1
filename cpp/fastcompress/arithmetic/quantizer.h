// From weights to frequencies the range coder can use: at least 1 each, 2^P in all, by integer arithmetic with stated
// rounding.
//
// For V weights, of which the greatest is not zero, with b = min(30, 38 - ceil(log2 V)):
//   1. w'_i = floor(w_i 2^s), with the s (of either sign) that brings the greatest into [2^b, 2^(b + 1));
//   2. W_i is the sum of those before i, W that of all, m = floor((2^P - V) 2^39 / W);
//   3. the cumulative frequency of i is i + floor(W_i m / 2^39), and at the end 2^P.
// Every step is exact for integers below 2^64 and for floats alike: scaling a float by a power of two loses nothing
// that step 1 keeps. So a table depends on the weights alone, and integers and floats of equal value give equal tables.
//
// One symbol's part needs two sums and two products, not V of them: which makes a row of 256 floats cheap to code with.
//
// Kernels are plain loops that compilers turn into vector code, compiled for AVX2 and AVX-512, too (common/targets.h).
//
// Tried and dropped: frequencies by a product each, what is missing from 2^P given to the greatest (half as fast).
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
Status check_table_size(size_t num_symbols, unsigned precision);

// Cumulative frequencies: 0 first, increasing, 2^P (P <= kMaxPrecision) last. The P, or what is wrong. O(V).
Result<unsigned> check_cumulative(std::span<const uint32_t> cumulative);

// Weights of several kinds, quantized row by row with scratch memory that is kept.
class Quantizer {
  public:
    // check_table_size() has passed.
    Quantizer(size_t num_symbols, unsigned precision);

    size_t num_symbols() const { return num_symbols_; }
    unsigned precision() const { return precision_; }

    // Makes `weights` (num_symbols of them: floats, or unsigned or signed integers) the current row, or says what is
    // wrong with them: a NaN, infinite or negative one, or all zero. O(V).
    template <class Weight>
    Status set_row(const Weight* weights);
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
    size_t find(uint32_t quantile, Slot& slot);

  private:
    uint64_t multiplier(uint64_t sum) const;
    uint32_t cumulative_of(size_t symbol, uint64_t sum_before, uint64_t multiplier) const;

    size_t num_symbols_;
    unsigned precision_;
    int scaled_bits_;             // the greatest scaled weight is in [2^this, 2^(this + 1))
    HugeArray<uint32_t> scaled_;  // w'
    std::vector<uint64_t> sums_;  // of blocks of them, for find()
};

}  // namespace fastcompress::arithmetic
