// An adaptive model of order 0 for alphabets of 1 to 2^22 symbols: counts of symbols in which recent ones weigh more.
//
// Counts start at 1. Coding a symbol adds `increment` to its count; when the sum T of all counts exceeds `limit`, every
// count is halved, rounded up. The coder needs frequencies that sum to 2^P: the counts [a, b) of T become the interval
// [floor(a 2^P / T), floor(b 2^P / T)), which is not empty because T <= 2^P (FORMAT.md, "Adaptive frequencies").
//
// The sums of counts are a Fenwick tree (P. Fenwick, "A new data structure for cumulative frequency tables", 1994):
// O(log V) per symbol, plus O(V) per halving, which is O(V increment / limit) per symbol on average.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/status.h"

namespace fastcompress::arithmetic {

struct FrequencyParams {
    uint32_t num_symbols;     // 1 to 2^22
    uint32_t increment = 32;  // 1 to 2^16
    uint32_t limit = 0;       // of the sum of counts: 2 num_symbols + 2 increment to 2^precision; 0: 2^precision
    bool operator==(const FrequencyParams&) const = default;
};
Status check(const FrequencyParams& params);

class AdaptiveFrequencies {
  public:
    struct Interval {
        uint32_t cumulative, frequency;
    };

    // Requires params that check() accepts.
    explicit AdaptiveFrequencies(const FrequencyParams& params);

    uint32_t num_symbols() const { return num_symbols_; }
    // max(16, ceil(log2 num_symbols) + 8), at most 24.
    unsigned precision() const { return precision_; }

    // Returns the interval of a symbol < num_symbols(), in units of 2^-precision.
    Interval interval(uint32_t symbol) const;
    // Returns the symbol whose interval contains the quantile, < 2^precision.
    uint32_t symbol_at(uint32_t quantile) const;
    void update(uint32_t symbol);
    // Returns the table: num_symbols() + 1 cumulative frequencies, 0 first and 2^precision last. O(V).
    std::vector<uint32_t> cumulative() const;

    // Encodes symbols < num_symbols(), learning from each. If there is no memory for the code of all of them, nothing
    // is encoded or learned. decode() is the inverse: kMalformed if no encoder wrote the code.
    void encode(std::span<const uint32_t> symbols, RangeEncoder& encoder);
    Status decode(RangeDecoder& decoder, std::span<uint32_t> symbols);

  private:
    uint32_t scaled(uint64_t sum) const { return static_cast<uint32_t>((sum << precision_) / total_); }
    // Returns the sum of the counts of smaller symbols.
    uint32_t sum_below(uint32_t symbol) const;
    void halve();

    uint32_t num_symbols_, increment_, limit_;
    unsigned precision_;
    uint32_t top_;  // the largest power of two <= num_symbols_
    uint32_t total_;
    std::vector<uint32_t> counts_;
    std::vector<uint32_t> tree_;  // [i]: the sum of the lowbit(i) counts before symbol i; tree_[0] is not used
};

}  // namespace fastcompress::arithmetic
