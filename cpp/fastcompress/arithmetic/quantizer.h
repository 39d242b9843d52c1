// Turns weights into frequencies that the range coder can use: at least 1 each, 2^P in all, by integer arithmetic whose
// rounding FORMAT.md states.
//
// For V weights, the largest of which is positive, with b = min(30, 38 - ceil(log2 V)):
//   1. w'_i = floor(w_i 2^s), with the s (of either sign) that brings the largest into [2^b, 2^(b + 1));
//   2. W_i is the sum of the w'_j before i, W the sum of all, m = floor((2^P - V) 2^39 / W);
//   3. the cumulative frequency of i is i + floor(W_i m / 2^39); the last one is 2^P.
//   Weights 1, 2, 5 with P = 4 give 0, 2, 6, 16: each symbol gets 1, and a share of the other 13.
// Every step is exact, for integers below 2^64 as for floats: scaling a float by a power of two loses nothing that step
// 1 keeps. So a table depends on the weights only, and integers and floats of equal value give equal tables.
//
// The interval of one symbol takes two sums and two products, not V products, so coding with a row of 256 floats is
// cheap. Kernels are plain loops that compilers vectorize, compiled for AVX2 and AVX-512 as well (common/targets.h).
//
// Tried and dropped: one product per frequency, with the remainder of 2^P given to the largest (half as fast).
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

// Symbols are below 2^23, so with 24 bits at least half of the total remains to be shared.
inline constexpr size_t kMaxSymbols = size_t{1} << 23;

// Returns max(16, ceil(log2 V) + 8), at most 24: 8 bits of resolution for the average symbol.
unsigned default_precision(size_t num_symbols);

// Checks an alphabet size and a precision. kInvalidArgument if either is out of range or they do not fit.
Status check_table_size(size_t num_symbols, unsigned precision);

// Checks a table of cumulative frequencies: 0 first, ascending strictly, 2^P (P <= kMaxPrecision) last. Returns P.
// O(V).
Result<unsigned> check_cumulative(std::span<const uint32_t> cumulative);

// Quantizes rows of weights, one at a time, with scratch memory that is kept between rows.
class Quantizer {
  public:
    // Requires arguments that check_table_size() accepts.
    Quantizer(size_t num_symbols, unsigned precision);

    size_t num_symbols() const { return num_symbols_; }
    unsigned precision() const { return precision_; }

    // Makes `weights`, num_symbols floats or integers, the current row. kInvalidArgument if one is NaN, infinite or
    // negative, or all are zero. O(V).
    template <class Weight>
    Status set_row(const Weight* weights) {
        return try_set_row(weights) ? Status() : row_problem(weights);
    }
    // The same for callers with many small rows, for each of which a Status costs a tenth of the time: returns false,
    // and row_problem(), which is never ok(), says why.
    template <class Weight>
    [[nodiscard]] bool try_set_row(const Weight* weights);
    template <class Weight>
    Status row_problem(const Weight* weights) const;
    // The same for logarithms to base 2 in units of 2^-16: weights 2^(l / 2^16). Any row is valid.
    void set_row_of_logits(const int32_t* logits);

    // Writes the V + 1 cumulative frequencies of the current row. O(V).
    void cumulative(uint32_t* out) const;
    struct Slot {
        uint32_t cumulative;
        uint32_t frequency;
    };
    Slot slot(size_t symbol) const;
    // Finds the symbol whose part of [0, 2^P) contains the quantile.
    size_t find(uint32_t quantile, Slot& slot);

  private:
    uint64_t multiplier(uint64_t sum) const;
    uint32_t cumulative_of(size_t symbol, uint64_t sum_before, uint64_t multiplier) const;

    size_t num_symbols_;
    unsigned precision_;
    int scaled_bits_;             // b: the largest scaled weight is in [2^b, 2^(b + 1))
    HugeArray<uint32_t> scaled_;  // w'
    std::vector<uint64_t> sums_;  // sums of blocks of w', for find()
};

}  // namespace fastcompress::arithmetic
