// The range coder: encodes symbols with integer frequencies to bytes, and decodes them. FORMAT.md defines the code,
// with an example, and proves its bounds.
//
// The symbols so far are an interval [low, low + range) of numbers in [0, 1), held as 64-bit integers. When the range
// has shrunk below 2^32, the upper 32 bits of `low` are written and the scale grows by 2^32. A carry out of a later
// addition adds one to the bytes written, as to a long number: it passes through bytes 0xff and ends at the first other
// byte. At the end, as few bits follow as single out a number in the interval. So the code is the shortest one of at
// least the bits already written: zeros at its end are kept.
//
// All arithmetic is in integers, so every machine writes the same bytes. For each symbol a model gives cumulative <
// cumulative + frequency <= 2^P, with a precision P of 1 to 24 bits and frequency >= 1. These are preconditions:
// quantize() makes such tables, and check_cumulative() tests them. Encoder and decoder must be given the same numbers.
//
// benchmarks/LOG.md lists what was tried and dropped.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/growing_array.h"
#include "fastcompress/common/status.h"

namespace fastcompress::arithmetic {

inline constexpr unsigned kMaxPrecision = 24;
// encode_bit() takes the probability of a one in units of 2^-16.
inline constexpr unsigned kBitPrecision = 16;

class RangeEncoder {
  public:
    RangeEncoder() = default;
    // A moved-from encoder is as new.
    RangeEncoder(RangeEncoder&& other) noexcept { *this = std::move(other); }
    RangeEncoder& operator=(RangeEncoder&& other) noexcept {
        low_ = std::exchange(other.low_, 0);
        range_ = std::exchange(other.range_, ~uint64_t{0});
        num_taken_ = std::exchange(other.num_taken_, 0);
        bytes_ = std::move(other.bytes_);
        return *this;
    }

    // Encodes a symbol. Requires frequency >= 1, cumulative + frequency <= 2^precision and 1 <= precision <=
    // kMaxPrecision. On std::bad_alloc the encoder is as before, here and in all other functions.
    void encode(uint32_t cumulative, uint32_t frequency, unsigned precision) {
        assert(precision >= 1 && precision <= kMaxPrecision && frequency >= 1);
        assert(uint64_t{cumulative} + frequency <= uint64_t{1} << precision);
        const uint64_t scale = range_ >> precision;
        narrow(scale * cumulative, scale * frequency);
    }
    // Encodes a bit that is one with probability p1 / 2^16, 1 <= p1 < 2^16.
    void encode_bit(bool bit, uint32_t p1) {
        assert(p1 >= 1 && p1 < 1u << kBitPrecision);
        const uint64_t bound = (range_ >> kBitPrecision) * p1;
        narrow(bit ? 0 : bound, bit ? bound : range_ - bound);
    }
    // Makes room for the code of `num_symbols` more symbols of this precision, which then cannot fail to be encoded.
    // For models that learn from what they encode, and could not take that back. A symbol takes up to `precision` bits
    // and, since the scale is rounded down by less than a part in 2^8, 0.006 bits more.
    void reserve(size_t num_symbols, unsigned precision) {
        if (num_symbols > kMaxReserved) throw std::bad_alloc();
        bytes_.reserve_more(num_symbols * precision / 8 + num_symbols / 1024 + 8);
    }

    // The length of the code in bits if it ended here: the bits of the words written, plus the fewest that, followed by
    // infinitely many zeros, give a number in the interval.
    uint64_t num_bits_if_finished() const { return 8 * num_bytes() + close().num_bits; }

    // The size of the interval, to one bit: it contains a number of this many bits. The decoder knows the same number,
    // RangeDecoder::bits_used().
    uint64_t bits_used() const { return 8 * num_bytes() + 65 - static_cast<uint64_t>(std::bit_width(range_)); }

    // Ends the code and returns its num_bits_if_finished() bits, the last byte filled up with zeros. Big-endian, so
    // that codes sort as their numbers do. The encoder is then as new.
    std::vector<uint8_t> finish();

    // Returns the bytes that nothing encoded later can change, each once: the code is all of these and finish(),
    // joined.
    std::vector<uint8_t> take_settled();

    // The state of the encoder, to be restored later: low, range, and the bytes that a carry could change, which are
    // the last one that is not 0xff and those after it.
    struct Snapshot {
        uint64_t low, range, num_bytes;
        size_t num_unsettled;
        uint8_t first_unsettled;
    };
    Snapshot snapshot() const;
    // Undoes what was encoded since the snapshot. Returns false, and changes nothing, if bytes of it have been taken
    // since.
    bool restore(const Snapshot& snapshot);

  private:
    friend class BulkEncoder;
    friend class RangeDecoder;
    static constexpr size_t kMaxReserved = size_t{1} << 58;

    struct Close {
        uint64_t value;     // the number, in the upper num_bits of 64; zeros below
        unsigned num_bits;  // 0 to 64
        bool carries;       // the number is 2^64 more
    };
    // The fewest bits that single out a number in [low, low + range).
    static Close close_interval(uint64_t low, uint64_t range);
    Close close() const { return close_interval(low_, range_); }
    uint64_t num_bytes() const { return num_taken_ + bytes_.size(); }
    size_t num_unsettled() const;

    // Makes [low + offset, low + offset + range) the interval. Frequencies are at least 1 and the scale is at least
    // 2^8, so writing one word is always enough. Room for it is made first, and whatever follows cannot fail.
    void narrow(uint64_t offset, uint64_t range) {
        const bool writes = range < uint64_t{1} << 32;
        uint8_t* const end = writes ? bytes_.extend(4) : bytes_.data() + bytes_.size();
        low_ += offset;
        range_ = range;
        if (low_ < offset) [[unlikely]]
            carry(end);
        if (writes) {
            store_word(end, static_cast<uint32_t>(low_ >> 32));
            range_ <<= 32;
            low_ <<= 32;
        }
    }
    // A byte other than 0xff exists, since the whole number stays below 1.
    static void carry(uint8_t* end) {
        while (++*--end == 0) {
        }
    }
    static void store_word(uint8_t* out, uint32_t word) {
        out[0] = static_cast<uint8_t>(word >> 24);  // compilers make one store of these four, but none of a loop
        out[1] = static_cast<uint8_t>(word >> 16);
        out[2] = static_cast<uint8_t>(word >> 8);
        out[3] = static_cast<uint8_t>(word);
    }
    static uint32_t load_word(const uint8_t* in) {
        return uint32_t{in[0]} << 24 | uint32_t{in[1]} << 16 | uint32_t{in[2]} << 8 | in[3];
    }

    uint64_t low_ = 0;
    uint64_t range_ = ~uint64_t{0};
    uint64_t num_taken_ = 0;
    GrowingArray<uint8_t> bytes_;
};

class RangeDecoder {
  public:
    // `code` must outlive the decoder.
    explicit RangeDecoder(Bytes code) : begin_(code.data()), next_(code.data()), end_(code.data() + code.size()) {
        code_ = uint64_t{read_word()} << 32;
        code_ |= read_word();
    }

    // Returns the quantile: the next symbol is the one with cumulative <= quantile < cumulative + frequency. Requires a
    // consume() of that symbol next.
    uint32_t peek(unsigned precision) {
        scale_ = range_ >> precision;
        const uint64_t quantile = code_ / scale_;
        const uint64_t greatest = (uint64_t{1} << precision) - 1;
        if (quantile > greatest) [[unlikely]] {  // the part that rounding loses: no encoder goes there
            is_impossible_ = true;
            return static_cast<uint32_t>(greatest);
        }
        return static_cast<uint32_t>(quantile);
    }
    void consume(uint32_t cumulative, uint32_t frequency) {
        code_ -= scale_ * cumulative;
        range_ = scale_ * frequency;
        renormalize();
    }
    bool decode_bit(uint32_t p1) {
        const uint64_t bound = (range_ >> kBitPrecision) * p1;
        const bool bit = code_ < bound;
        if (bit) {
            range_ = bound;
        } else {
            code_ -= bound;
            range_ -= bound;
        }
        renormalize();
        return bit;
    }

    // Returns false if no encoder wrote the code: its number lies outside every symbol, or more bytes are needed than
    // exist. (Symbols decoded before may be wrong.) Callers that decode many symbols ask from time to time; until then
    // zeros are read.
    bool ok() const { return !is_impossible_ && num_missing_ <= 8 && code_ < range_; }

    // Returns what RangeEncoder::bits_used() was after the same symbols.
    uint64_t bits_used() const {
        const uint64_t num_read = num_read_before_ + static_cast<uint64_t>(next_ - begin_) + num_missing_;
        return 8 * num_read + 1 - static_cast<uint64_t>(std::bit_width(range_));
    }

    // Returns whether the first num_bits bits of `code`, the complete code, determine what has been decoded so far:
    // whatever follows them, the number stays in the interval.
    bool is_settled_by(uint64_t num_bits, Bytes code) const;

    // Returns whether the code, given whole, is exactly what RangeEncoder::finish() returns after the symbols decoded
    // so far: nothing follows it, and no shorter or other code was possible.
    bool is_finished_by(Bytes code) const;

    // The length of the code that RangeEncoder::finish() returns after the same symbols, in bytes. What follows it was
    // not written by this encoder.
    uint64_t code_bytes() const;

    // Returns kMalformed if the code, num_bytes long with all of its symbols decoded, continues after its end.
    Status check_end(uint64_t num_bytes) const;

    // For a code that comes piece by piece: the bytes not read yet with up to eight before them, and a copy of those,
    // with more bytes after them, from which reading continues. A symbol reads at most four bytes.
    Bytes unread() const { return {next_, end_}; }
    size_t num_before_unread() const { return std::min<size_t>(8, static_cast<size_t>(next_ - begin_)); }
    void move_to(Bytes bytes, size_t num_before_unread) {
        num_read_before_ += static_cast<uint64_t>(next_ - begin_) - num_before_unread;
        begin_ = bytes.data();
        next_ = begin_ + num_before_unread;
        end_ = begin_ + bytes.size();
    }

  private:
    friend class BulkDecoder;

    void renormalize() {
        if (range_ < uint64_t{1} << 32) {
            range_ <<= 32;
            code_ = code_ << 32 | read_word();
        }
    }
    uint32_t read_word() {
        if (end_ - next_ >= 4) [[likely]] {
            const uint8_t* const in = next_;
            next_ += 4;
            return uint32_t{in[0]} << 24 | uint32_t{in[1]} << 16 | uint32_t{in[2]} << 8 | in[3];
        }
        return read_last_word();
    }
    uint32_t read_last_word();

    uint64_t code_ = 0;  // the next 64 bits of the code, minus low
    uint64_t range_ = ~uint64_t{0};
    uint64_t scale_ = 1;
    uint64_t num_read_before_ = 0;  // bytes before begin_
    const uint8_t* begin_;
    const uint8_t* next_;
    const uint8_t* end_;
    uint64_t num_missing_ = 0;  // bytes read past the end, as zeros
    bool is_impossible_ = false;
};

}  // namespace fastcompress::arithmetic
