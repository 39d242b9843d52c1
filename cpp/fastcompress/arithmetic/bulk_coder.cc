#include "fastcompress/arithmetic/bulk_coder.h"

#include <array>

#include "fastcompress/common/prefetch.h"
#include "fastcompress/common/read_once.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::arithmetic {

namespace {

constexpr size_t kAhead = 16;        // number of symbols after which prefetched parts of a table are used
constexpr size_t kWorthACopy = 256;  // number of symbols that, with two per number of the table, repays its copy

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
    if (symbols.size() < kWorthACopy + 2 * cumulative.size()) {
        return run(symbols, ForeignTable(cumulative, precision), precision);
    }
    std::vector<uint32_t> copy(cumulative.begin(), cumulative.end());
    const auto found = check_cumulative(copy);  // the original may have changed since it was checked
    return found.ok() && *found == precision && run(symbols, OwnTable(copy), precision);
}

template <class Symbol>
bool BulkEncoder::encode_rows(std::span<const Symbol> symbols, const uint32_t* rows, size_t row_size,
                              unsigned precision) {
    return run(symbols, ForeignRows(rows, row_size, precision), precision);
}

SymbolIndex::SymbolIndex(std::span<const uint32_t> cumulative, unsigned precision)
    : cumulative_(cumulative.begin(), cumulative.end()),
      shift_(precision > 12 ? precision - 12 : 0),
      first_(size_t{1} << (precision - shift_)) {
    cumulative_.back() = 1u << precision;  // above every quantile, which ends the search if the table was changed
    uint32_t symbol = 0;
    for (size_t i = 0; i < first_.size(); ++i) {
        while (cumulative_[symbol + 1] <= i << shift_) ++symbol;
        first_[i] = symbol;
    }
}

namespace {

struct Found {
    size_t symbol;
    uint32_t begin, end;  // its part of [0, 2^precision)
};

Found found_at(const uint32_t* cumulative, size_t symbol) {
    return {symbol, read_once(cumulative[symbol]), read_once(cumulative[symbol + 1])};
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
        uint32_t frequency = found.end - found.begin;
        if (frequency - 1 > greatest) [[unlikely]] {  // none, in a table that another thread has changed
            frequency = 1;
            is_impossible = true;
        }
        code -= scale * found.begin;
        range = scale * frequency;
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

namespace {

constexpr size_t kWorthAnIndex = 2048;  // number of symbols that repays filling the index

}  // namespace

template <class Symbol>
bool BulkDecoder::decode(std::span<Symbol> out, std::span<const uint32_t> cumulative, unsigned precision) {
    const uint32_t* const table = cumulative.data();
    if (out.size() < kWorthAnIndex) {
        const size_t num_symbols = cumulative.size() - 1;
        return run(
            out, [=](size_t, uint32_t quantile) { return found_at(table, find_symbol(table, num_symbols, quantile)); },
            precision);
    }
    const SymbolIndex index(cumulative, precision);
    return run(
        out,
        [&](size_t, uint32_t quantile) {
            const size_t symbol = index.find(quantile);
            return Found{symbol, index.cumulative()[symbol], index.cumulative()[symbol + 1]};
        },
        precision);
}

template <class Symbol>
bool BulkDecoder::decode_rows(std::span<Symbol> out, const uint32_t* rows, size_t row_size, unsigned precision) {
    return run(
        out,
        [=](size_t i, uint32_t quantile) {
            const uint32_t* const row = rows + i * row_size;
            return found_at(row, find_symbol(row, row_size - 1, quantile));
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
