#include "fastcompress/arithmetic/bulk_coder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "fastcompress/common/prefetch.h"
#include "fastcompress/common/read_once.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::arithmetic {

namespace {

constexpr size_t kAhead = 16;  // number of symbols after which prefetched parts of a table are used

// Whether a copy of a table, which is checked once, costs less than to check what is read for each of `count` symbols.
bool is_copy_worthwhile(size_t count, size_t table_size) {
    return count >= 256 + 2 * table_size;
}

// Returns a copy of a table that another thread may have changed since it was checked; nullopt if it has.
std::optional<std::vector<uint32_t>> checked_copy(std::span<const uint32_t> cumulative, unsigned precision) {
    std::vector<uint32_t> copy(cumulative.begin(), cumulative.end());
    const Result<unsigned> found = check_cumulative(copy);
    if (!found.ok() || *found != precision) return std::nullopt;
    return copy;
}

// A table that no other thread can change, so that only symbols need a check.
class OwnTable {
  public:
    static constexpr bool kIsPrefetched = false;

    explicit OwnTable(std::span<const uint32_t> cumulative)
        : cumulative_(cumulative.data()), num_symbols_(cumulative.size() - 1) {}

    // Sets `part` to the numbers at which the symbol's part of [0, 2^precision) begins and ends. Returns false if it
    // has none.
    bool find(size_t, size_t symbol, std::array<uint32_t, 2>& part) const {
        if (symbol >= num_symbols_) return false;
        part = {cumulative_[symbol], cumulative_[symbol + 1]};
        return true;
    }

  private:
    const uint32_t* cumulative_;
    size_t num_symbols_;
};

// A table that another thread may change. One that is not worth a copy is large, or there are few symbols.
class ForeignTable {
  public:
    static constexpr bool kIsPrefetched = true;

    ForeignTable(std::span<const uint32_t> cumulative, unsigned precision)
        : cumulative_(cumulative.data()), num_symbols_(cumulative.size() - 1), total_(1u << precision) {}

    bool find(size_t, size_t symbol, std::array<uint32_t, 2>& part) const {
        if (symbol >= num_symbols_) return false;
        const uint32_t* const begin = at(symbol);
        part = {read_once(begin[0]), read_once(begin[1])};
        return part[0] < part[1] && part[1] <= total_;
    }
    const uint32_t* at(size_t symbol) const { return cumulative_ + symbol; }

  private:
    const uint32_t* cumulative_;
    size_t num_symbols_;
    uint32_t total_;
};

// One such table per symbol.
class ForeignRows {
  public:
    static constexpr bool kIsPrefetched = false;

    ForeignRows(const uint32_t* rows, size_t row_size, unsigned precision)
        : rows_(rows), row_size_(row_size), precision_(precision) {}

    bool find(size_t i, size_t symbol, std::array<uint32_t, 2>& part) const {
        return ForeignTable({rows_ + i * row_size_, row_size_}, precision_).find(i, symbol, part);
    }

  private:
    const uint32_t* rows_;
    size_t row_size_;
    unsigned precision_;
};

}  // namespace

template <class Symbol, class Table>
bool BulkEncoder::run(std::span<const Symbol> symbols, const Table& table, unsigned precision) {
    const RangeEncoder::Snapshot before = encoder_.snapshot();
    Rollback rollback([&] { encoder_.restore(before); });
    const bool is_good = put(symbols, table, precision);
    if (is_good) rollback.release();
    return is_good;
}

template <class Symbol, class Table>
bool BulkEncoder::put(std::span<const Symbol> symbols, const Table& table, unsigned precision) {
    // A symbol writes at most one word, so room for all is made first; in pieces, since most write less.
    constexpr size_t kFirstPiece = 1 << 8, kPiece = 1 << 16;
    GrowingArray<uint8_t>& bytes = encoder_.bytes_;
    bool is_good = true;
    for (size_t begin = 0; begin < symbols.size() && is_good;) {
        // put_piece() keeps the last word of the code in a register. As long as the code is shorter than a word, zeros
        // are put in front of it for a piece: a short one, since its bytes are moved afterwards.
        const size_t num_zeros = bytes.size() < 4 ? 4 : 0;
        const size_t count = std::min(symbols.size() - begin, num_zeros > 0 ? kFirstPiece : kPiece);
        bytes.reserve_more(num_zeros + 4 * count);
        bytes.insert_zeros(num_zeros);
        is_good = put_piece(symbols.subspan(begin, count), begin, table, precision);
        bytes.erase_front(num_zeros);
        begin += count;
    }
    return is_good;
}

template <class Symbol, class Table>
bool BulkEncoder::put_piece(std::span<const Symbol> symbols, size_t first, Table table, unsigned precision) {
    GrowingArray<uint8_t>& bytes = encoder_.bytes_;
    uint64_t low = encoder_.low_;
    uint64_t range = encoder_.range_;
    uint8_t* out = bytes.data() + bytes.size() - 4;
    // The word at `out`, and above it a carry out of it, which is rare. A carry into it costs an addition, where a
    // branch would be guessed wrong.
    uint64_t word = RangeEncoder::load_word(out);
    bool is_good = true;
    for (size_t i = 0; i < symbols.size(); ++i) {
        if constexpr (Table::kIsPrefetched) {
            // The symbol may be another one, or no symbol, when it is read again: nothing depends on this address.
            if (i + kAhead < symbols.size()) prefetch(table.at(symbols[i + kAhead]));
        }
        std::array<uint32_t, 2> part;
        if (!table.find(first + i, read_once(symbols[i]), part)) [[unlikely]] {
            is_good = false;
            break;
        }
        const uint64_t scale = range >> precision;
        const uint64_t amount = scale * part[0];
        low += amount;
        word += low < amount;
        range = scale * (part[1] - part[0]);
        if (range < uint64_t{1} << 32) {
            if (word >> 32 != 0) [[unlikely]]
                RangeEncoder::carry(out);
            RangeEncoder::store_word(out, static_cast<uint32_t>(word));
            out += 4;
            word = low >> 32;
            low <<= 32;
            range <<= 32;
        }
    }
    if (word >> 32 != 0) RangeEncoder::carry(out);
    RangeEncoder::store_word(out, static_cast<uint32_t>(word));
    bytes.extend(static_cast<size_t>(out + 4 - bytes.data()) - bytes.size());
    encoder_.low_ = low;
    encoder_.range_ = range;
    return is_good;
}

template <class Symbol>
bool BulkEncoder::encode(std::span<const Symbol> symbols, std::span<const uint32_t> cumulative, unsigned precision) {
    if (!is_copy_worthwhile(symbols.size(), cumulative.size())) {
        return run(symbols, ForeignTable(cumulative, precision), precision);
    }
    const auto copy = checked_copy(cumulative, precision);
    return copy && run(symbols, OwnTable(*copy), precision);
}

template <class Symbol>
bool BulkEncoder::encode_rows(std::span<const Symbol> symbols, const uint32_t* rows, size_t row_size,
                              unsigned precision) {
    return run(symbols, ForeignRows(rows, row_size, precision), precision);
}

SymbolIndex::SymbolIndex(std::span<const uint32_t> cumulative, unsigned precision, size_t count)
    : cumulative_(cumulative.data()), last_(cumulative.size() - 2) {
    // With E entries, filling takes E steps and the symbols take count V / (2 E), so the best E is sqrt(count V / 2),
    // within the limits of the caches.
    constexpr unsigned kMinMostBits = 12, kMaxMostBits = 16;
    const auto log2 = [](uint64_t x) { return static_cast<unsigned>(std::bit_width(x)) - 1; };
    const unsigned most = std::clamp(log2(cumulative.size()), kMinMostBits, kMaxMostBits);
    const unsigned num_bits = std::min({precision, most, log2(uint64_t{count} * cumulative.size() / 2) / 2});
    const unsigned shift = shift_ = precision - num_bits;
    // Entry i is the last symbol that begins at or before i 2^shift, or one before it. They are filled without branches,
    // which would be guessed wrong: symbols go to the first entry at or after their beginning (one more entry is for
    // those that begin after all), then entries without a symbol get the one before. If entries are fewer than symbols,
    // only every n-th symbol is entered, and frequent ones, which span several entries, are found by a search.
    const uint32_t num_entries = 1u << num_bits, round_up = (1u << shift) - 1;
    first_.resize(num_entries + 1);
    uint32_t* const first = first_.data();
    const auto num_symbols = static_cast<uint32_t>(cumulative.size() - 1);
    const uint32_t stride = std::max(1u, num_symbols >> num_bits);
    for (uint32_t symbol = 0; symbol < num_symbols; symbol += stride) {
        first[std::min((read_once(cumulative[symbol]) + round_up) >> shift, num_entries)] = symbol;
    }
    uint32_t before = 0;
    for (uint32_t i = 0; i < num_entries; ++i) {
        if (stride > 1 && first[i] <= before) {
            while (before < last_ && read_once(cumulative[before + 1]) <= i << shift) ++before;
        } else {
            before = std::max(first[i], before);
        }
        first[i] = before;
    }
}

bool SymbolIndex::is_worthwhile(size_t count, size_t num_symbols) {
    // With so many, large alphabets too: their tables exceed the cache, and a binary search misses it at every step.
    constexpr size_t kAlways = 2048;
    // In steps of a binary search. To allocate the index costs as much as a thousand.
    return count >= kAlways || count * std::bit_width(num_symbols) > num_symbols + count + 1024;
}

namespace {

struct Found {
    size_t symbol;
    uint32_t begin, frequency;  // its part of [0, 2^precision)
    bool is_good;
};

Found own_part(const uint32_t* cumulative, size_t symbol) {
    const uint32_t* const at = cumulative + symbol;
    return {symbol, at[0], at[1] - at[0], true};
}
// The same of a table that another thread may have changed.
Found foreign_part(const uint32_t* cumulative, size_t symbol, unsigned precision) {
    const uint32_t begin = read_once(cumulative[symbol]);
    const uint32_t frequency = read_once(cumulative[symbol + 1]) - begin;
    if (frequency - 1 >= 1u << precision) [[unlikely]]
        return {symbol, begin, 1, false};
    return {symbol, begin, frequency, true};
}

}  // namespace

template <class Symbol, class Find>
bool BulkDecoder::run(std::span<Symbol> out, const Find& find, unsigned precision) {
    RangeDecoder& decoder = decoder_;
    const uint32_t greatest = (1u << precision) - 1;
    uint64_t code = decoder.code_;
    uint64_t range = decoder.range_;
    const uint8_t* in = decoder.next_;
    bool is_impossible = false;
    size_t i = 0;
    const auto symbol_at = [&](uint64_t scale, uint64_t word) {
        uint64_t quantile = code / scale;
        if (quantile > greatest) [[unlikely]] {
            quantile = greatest;
            is_impossible = true;
        }
        const Found found = find(i, static_cast<uint32_t>(quantile));
        out[i] = static_cast<Symbol>(found.symbol);
        is_impossible |= !found.is_good;
        code -= scale * found.begin;
        range = scale * found.frequency;
        const bool is_short = range < uint64_t{1} << 32;
        if (is_short) {
            range <<= 32;
            code = code << 32 | word;
        }
        return is_short;
    };
    for (; i < out.size() && decoder.end_ - in >= 4; ++i) {
        const uint32_t word = uint32_t{in[0]} << 24 | uint32_t{in[1]} << 16 | uint32_t{in[2]} << 8 | in[3];
        in += symbol_at(range >> precision, word) ? 4 : 0;
    }
    decoder.next_ = in;
    for (; i < out.size() && decoder.num_missing_ <= 8; ++i) {
        if (symbol_at(range >> precision, 0)) code |= decoder.read_word();
    }
    decoder.code_ = code;
    decoder.range_ = range;
    decoder.is_impossible_ |= is_impossible;
    return decoder.ok();
}

template <class Symbol>
bool BulkDecoder::decode(std::span<Symbol> out, std::span<const uint32_t> cumulative, unsigned precision) {
    if (is_copy_worthwhile(out.size(), cumulative.size() / 4)) {
        const auto copy = checked_copy(cumulative, precision);
        if (copy) return decode_own(out, *copy, precision);
        decoder_.is_impossible_ = true;
        return false;
    }
    const size_t num_symbols = cumulative.size() - 1;
    if (!SymbolIndex::is_worthwhile(out.size(), num_symbols)) {
        return decode_rows(out, cumulative.data(), 0, num_symbols, precision);
    }
    const uint32_t* const table = cumulative.data();
    const SymbolIndex index(cumulative, precision, out.size());
    return run(
        out, [&](size_t, uint32_t quantile) { return foreign_part(table, index.find_bounded(quantile), precision); },
        precision);
}

template <class Symbol>
bool BulkDecoder::decode_own(std::span<Symbol> out, std::span<const uint32_t> cumulative, unsigned precision) {
    const uint32_t* const table = cumulative.data();
    const size_t num_symbols = cumulative.size() - 1;
    if (SymbolIndex::is_worthwhile(out.size(), num_symbols)) {
        const SymbolIndex index(cumulative, precision, out.size());
        return run(
            out, [&](size_t, uint32_t quantile) { return own_part(table, index.find(quantile)); }, precision);
    }
    return run(
        out, [=](size_t, uint32_t quantile) { return own_part(table, find_symbol(table, num_symbols, quantile)); },
        precision);
}

template <class Symbol>
bool BulkDecoder::decode_rows(std::span<Symbol> out, const uint32_t* rows, size_t row_size, unsigned precision) {
    return decode_rows(out, rows, row_size, row_size - 1, precision);
}

template <class Symbol>
bool BulkDecoder::decode_rows(std::span<Symbol> out, const uint32_t* rows, size_t stride, size_t num_symbols,
                              unsigned precision) {
    return run(
        out,
        [=](size_t i, uint32_t quantile) {
            const uint32_t* const row = rows + i * stride;
            return foreign_part(row, find_symbol(row, num_symbols, quantile), precision);
        },
        precision);
}

#define FASTCOMPRESS_FOR_SYMBOL(Symbol)                                                                 \
    template bool BulkEncoder::encode(std::span<const Symbol>, std::span<const uint32_t>, unsigned);    \
    template bool BulkEncoder::encode_rows(std::span<const Symbol>, const uint32_t*, size_t, unsigned); \
    template bool BulkDecoder::decode(std::span<Symbol>, std::span<const uint32_t>, unsigned);          \
    template bool BulkDecoder::decode_rows(std::span<Symbol>, const uint32_t*, size_t, unsigned);
FASTCOMPRESS_FOR_SYMBOL(uint8_t)
FASTCOMPRESS_FOR_SYMBOL(uint16_t)
FASTCOMPRESS_FOR_SYMBOL(uint32_t)

}  // namespace fastcompress::arithmetic
