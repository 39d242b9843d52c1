// Codes many symbols in one call, with the state of the coder in registers: one table for all of them, or one row per
// symbol. The bytes are those of RangeEncoder::encode, symbol by symbol.
//
// Tables have passed check_cumulative(). Rows are V + 1 cumulative frequencies each, one after the other. Symbols and
// tables may belong to a program that changes them meanwhile: then the calls give false or wrong symbols, but touch no
// other memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fastcompress/arithmetic/quantizer.h"
#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/read_once.h"

namespace fastcompress::arithmetic {

class BulkEncoder {
  public:
    explicit BulkEncoder(RangeEncoder& encoder) : encoder_(encoder) {}

    // Encodes symbols. Returns false, with nothing encoded, if a symbol is not below V or has no frequency (in a table
    // that was changed). O(n).
    template <class Symbol>
    [[nodiscard]] bool encode(std::span<const Symbol> symbols, std::span<const uint32_t> cumulative,
                              unsigned precision);
    // The same with one row per symbol. O(n).
    template <class Symbol>
    [[nodiscard]] bool encode_rows(std::span<const Symbol> symbols, const uint32_t* rows, size_t row_size,
                                   unsigned precision);

  private:
    template <class Symbol, class Table>
    bool run(std::span<const Symbol> symbols, const Table& table, unsigned precision);
    template <class Symbol, class Table>
    bool put(std::span<const Symbol> symbols, const Table& table, unsigned precision);
    // Encodes symbols, of which the first has row `first`. Requires a word before them, and room for one per symbol.
    template <class Symbol, class Table>
    bool put_piece(std::span<const Symbol> symbols, size_t first, Table table, unsigned precision);

    RangeEncoder& encoder_;
};

// Finds the symbol of a quantile: for each value of the quantile's upper bits it stores the first symbol to try.
class SymbolIndex {
  public:
    // For about `count` symbols to be found: more entries than that would cost more than they save. `cumulative` must
    // outlive the index. O(sqrt(count V)), and at most O(V).
    SymbolIndex(std::span<const uint32_t> cumulative, unsigned precision, size_t count);

    // Returns whether filling the index takes less time than finding `count` symbols by binary search.
    static bool is_worthwhile(size_t count, size_t num_symbols);

    // Requires that no other thread has changed the table since it was checked.
    size_t find(uint32_t quantile) const {
        size_t symbol = first_[quantile >> shift_];
        while (cumulative_[symbol + 1] <= quantile) ++symbol;
        return symbol;
    }
    // Finds some symbol of a table that another thread may change, the right one if none does.
    size_t find_bounded(uint32_t quantile) const {
        size_t symbol = first_[quantile >> shift_];
        while (symbol < last_ && read_once(cumulative_[symbol + 1]) <= quantile) ++symbol;
        return symbol;
    }

  private:
    const uint32_t* cumulative_;
    size_t last_;  // symbol
    unsigned shift_;
    std::vector<uint32_t> first_;
};

class BulkDecoder {
  public:
    explicit BulkDecoder(RangeDecoder& decoder) : decoder_(decoder) {}

    // Decodes out.size() symbols. Returns false if no encoder wrote the code (RangeDecoder::ok()). O(n log V) for few
    // symbols, otherwise O(n + V).
    template <class Symbol>
    bool decode(std::span<Symbol> out, std::span<const uint32_t> cumulative, unsigned precision);
    // The same with one row per symbol. O(n log V).
    template <class Symbol>
    bool decode_rows(std::span<Symbol> out, const uint32_t* rows, size_t row_size, unsigned precision);

  private:
    // decode() with a table that no other thread can change.
    template <class Symbol>
    bool decode_own(std::span<Symbol> out, std::span<const uint32_t> cumulative, unsigned precision);
    // Row i begins `stride` numbers after row i - 1: 0 for one table.
    template <class Symbol>
    bool decode_rows(std::span<Symbol> out, const uint32_t* rows, size_t stride, size_t num_symbols,
                     unsigned precision);
    template <class Symbol, class Find>
    bool run(std::span<Symbol> out, const Find& find, unsigned precision);

    RangeDecoder& decoder_;
};

// Finds the symbol s with cumulative[s] <= quantile < cumulative[s + 1] by binary search without branches. O(log V).
inline size_t find_symbol(const uint32_t* cumulative, size_t num_symbols, uint32_t quantile) {
    const uint32_t* begin = cumulative;
    while (num_symbols > 1) {
        const size_t half = num_symbols / 2;
        begin += begin[half] <= quantile ? half : 0;
        num_symbols -= half;
    }
    return static_cast<size_t>(begin - cumulative);
}

}  // namespace fastcompress::arithmetic
