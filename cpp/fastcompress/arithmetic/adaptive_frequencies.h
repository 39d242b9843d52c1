// An adaptive model of order 0: how often each symbol came, lately more than long ago, for any alphabet from 1 symbol
// to 2^22.
//
// Counts are at least 1. A symbol that comes gets `increment` more; when their sum passes `limit`, every count is
// halved, rounded up. The coder wants frequencies that sum to 2^precision: a count interval [a, b) of T in all is given
// [floor(a 2^P / T), floor(b 2^P / T)), which is not empty because T <= 2^P (context_mixer/FORMAT.md).
//
// The sums of counts are a Fenwick tree (P. Fenwick, "A new data structure for cumulative frequency tables", 1994):
// O(log V) a symbol, and O(V) now and then for halving, which is O(V increment / limit) a symbol.
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
    uint32_t limit = 0;       // of the sum: 2 num_symbols + 2 increment to 2^24; 0: the precision's
    bool operator==(const FrequencyParams&) const = default;
};
Status check(const FrequencyParams& params);

class AdaptiveFrequencies {
  public:
    struct Interval {
        uint32_t cumulative, frequency;
    };

    // `params` are good: check() says so.
    explicit AdaptiveFrequencies(const FrequencyParams& params);

    uint32_t num_symbols() const { return num_symbols_; }
    // max(16, ceil(log2 num_symbols) + 8), at most 24.
    unsigned precision() const { return precision_; }

    // Of a symbol < num_symbols(), in units of 2^-precision.
    Interval interval(uint32_t symbol) const;
    // Whose interval holds the quantile, < 2^precision.
    uint32_t symbol_at(uint32_t quantile) const;
    void update(uint32_t symbol);
    // All intervals' ends: num_symbols() + 1 numbers, 0 first and 2^precision last. O(V).
    std::vector<uint32_t> cumulative() const;

    // Codes symbols < num_symbols(), learning from each. If there is no memory for the code of all of them, nothing is
    // encoded or learned.
    void encode(std::span<const uint32_t> symbols, RangeEncoder& encoder);
    Status decode(RangeDecoder& decoder, std::span<uint32_t> symbols);

  private:
    uint32_t scaled(uint64_t sum) const { return static_cast<uint32_t>((sum << precision_) / total_); }
    // Of the counts of symbols below.
    uint32_t sum_below(uint32_t symbol) const;
    void halve();

    uint32_t num_symbols_, increment_, limit_;
    unsigned precision_;
    uint32_t top_;  // the greatest power of two <= num_symbols_
    uint32_t total_;
    std::vector<uint32_t> counts_;
    std::vector<uint32_t> tree_;  // [i]: the sum of the lowbit(i) counts before symbol i; tree_[0] is not used
};

}  // namespace fastcompress::arithmetic
