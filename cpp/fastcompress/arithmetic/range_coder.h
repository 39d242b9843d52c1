// The range coder: symbols with integer frequencies into bits, and back. FORMAT.md derives it and states its bounds.
//
// A message is an interval [low, low + range) of numbers in [0, 1), held as 64-bit integers at a scale that doubles 32 times
// whenever the range has shrunk below 2^32. Then the upper 32 bits of low leave for the output; a carry out of a later
// addition may still add one to them, so the last word, and words of all ones after it, are held back until none can.
//
// Integers only: the same bytes on every machine. A model gives, for each symbol, cumulative < cumulative + frequency <= 2^P with
// a precision P of 1 to 24 bits and frequency >= 1; nobody checks that here (quantize() makes such tables, check_cumulative()
// tests them). Encoder and decoder must be given the same numbers.
//
// Tried and dropped: see benchmarks/LOG.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/growing_array.h"

namespace fastcompress::arithmetic {

inline constexpr unsigned kMaxPrecision = 24;
// Of a bit's probability: encode_bit takes that of a one in units of 2^-16.
inline constexpr unsigned kBitPrecision = 16;

class RangeEncoder {
  public:
    // 1 <= frequency, cumulative + frequency <= 2^precision, 1 <= precision <= kMaxPrecision.
    void encode(uint32_t cumulative, uint32_t frequency, unsigned precision) {
        const uint64_t scale = range_ >> precision;
        add(scale * cumulative);
        range_ = scale * frequency;
        renormalize();
    }
    // A bit that is one with probability p1 / 2^16, 1 <= p1 < 2^16.
    void encode_bit(bool bit, uint32_t p1) {
        const uint64_t bound = (range_ >> kBitPrecision) * p1;
        if (bit) {
            range_ = bound;
        } else {
            add(bound);
            range_ -= bound;
        }
        renormalize();
    }

    // How many bits the message takes if it ends here: a number of so many bits, followed by zeros without end, lies in the
    // interval, and none of fewer bits does.
    uint64_t bits_if_closed() const { return 32 * num_words() + close().num_bits; }

    // Ends the message: its bits_if_closed() bits, the last byte filled up with zeros. Big-endian, so that messages sort as
    // their numbers do. The encoder is then as new.
    std::vector<uint8_t> finish();

    // Bytes that nothing encoded later can change, handed over once: the message is all of these and finish(), joined.
    std::vector<uint8_t> take_settled();

    // All that a message is so far, to come back to later: O(1). restore() undoes what was encoded since; bytes must not have
    // been taken in between.
    struct Snapshot {
        uint64_t low, range, num_pending;
        size_t num_settled_bytes;
        uint32_t held;
        bool has_held;
    };
    Snapshot snapshot() const { return {low_, range_, num_pending_, settled_.size(), held_, has_held_}; }
    void restore(const Snapshot& snapshot);

  private:
    struct Close {
        uint64_t value;     // the number: the upper num_bits of 64, zeros below
        unsigned num_bits;  // 0 to 64
        bool carries;       // it is 2^64 more
    };
    Close close() const;
    uint64_t num_words() const { return settled_words_ + settled_.size() / 4 + (has_held_ ? 1 : 0) + num_pending_; }

    void add(uint64_t amount) {
        low_ += amount;
        if (low_ < amount) [[unlikely]]
            carry();
    }
    // Frequencies are at least 1 and the scale is at least 2^8, so one step is always enough.
    void renormalize() {
        if (range_ < uint64_t{1} << 32) {
            range_ <<= 32;
            shift();
        }
    }
    void shift() {
        const auto word = static_cast<uint32_t>(low_ >> 32);
        low_ <<= 32;
        if (word == 0xffffffffu) [[unlikely]] {
            ++num_pending_;
            return;
        }
        if (has_held_) [[likely]]
            settle(held_);
        if (num_pending_ > 0) [[unlikely]]
            settle_pending(0xffffffffu);
        held_ = word;
        has_held_ = true;
    }
    void settle(uint32_t word) {
        uint8_t* const out = settled_.extend(4);
        for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(word >> (24 - 8 * i));
    }
    void settle_pending(uint32_t word) {
        for (; num_pending_ > 0; --num_pending_) settle(word);
    }
    void carry();

    uint64_t low_ = 0;
    uint64_t range_ = ~uint64_t{0};
    uint64_t num_pending_ = 0;  // words of all ones after held_
    uint32_t held_ = 0;         // the last word that is not all ones
    bool has_held_ = false;
    uint64_t settled_words_ = 0;  // of those taken
    GrowingArray<uint8_t> settled_;
};

class RangeDecoder {
  public:
    // `message` must outlive it.
    explicit RangeDecoder(Bytes message) : next_(message.data()), end_(message.data() + message.size()) {
        code_ = uint64_t{read_word()} << 32;
        code_ |= read_word();
    }

    // The number in [0, 2^precision) in whose symbol's part of the interval the message lies; then consume() that symbol.
    uint32_t peek(unsigned precision) {
        scale_ = range_ >> precision;
        const uint64_t quantile = code_ / scale_;
        const uint64_t greatest = (uint64_t{1} << precision) - 1;
        if (quantile > greatest) [[unlikely]] {  // no encoder leaves the part that truncation loses
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

    // False once the message cannot be one that an encoder wrote: a number outside every symbol, or more bytes needed than there
    // are. (Anything may have been decoded before.) Whoever decodes many symbols asks now and then; until then zeros are read.
    bool ok() const { return !is_impossible_ && num_missing_ <= 8; }

  private:
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

    uint64_t code_ = 0;  // of the message, from low on
    uint64_t range_ = ~uint64_t{0};
    uint64_t scale_ = 1;
    const uint8_t* next_;
    const uint8_t* end_;
    uint64_t num_missing_ = 0;  // bytes read behind the end, as zeros
    bool is_impossible_ = false;
};

}  // namespace fastcompress::arithmetic
