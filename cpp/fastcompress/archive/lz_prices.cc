#include "fastcompress/archive/lz_prices.h"

#include <algorithm>

#include "fastcompress/archive/lz_models.h"

namespace fastcompress::archive {
namespace {

// 256 log2(1 + i / 2048), by squaring: the next bit of the logarithm is one if the square is at least 2.
constexpr std::array<uint16_t, 2048> kLog2 = [] {
    std::array<uint16_t, 2048> table{};
    for (uint64_t i = 0; i < 2048; ++i) {
        uint64_t x = (2048 + i) << 20;  // in units of 2^-31
        uint32_t log = 0;
        for (int bit = 0; bit < 8; ++bit) {
            x = x * x >> 31;
            log <<= 1;
            if (x >= uint64_t{1} << 32) {
                x >>= 1;
                log |= 1;
            }
        }
        table[i] = static_cast<uint16_t>(log);
    }
    return table;
}();

using Counts = std::array<uint32_t, 16>;

// Returns prices by counts, each taken to be one more than it is.
std::array<uint32_t, 16> prices_of(const Counts& counts) {
    uint32_t total = 0;
    for (const uint32_t count : counts) total += count + 1;
    std::array<uint32_t, 16> prices;
    for (size_t i = 0; i < 16; ++i) prices[i] = log2_of(total) - log2_of(counts[i] + 1);
    return prices;
}

// Counts of numbers, as symbols below 15 and escapes.
struct NumberCounts {
    Counts first{};
    Counts bucket{};

    void add(uint32_t number) {
        ++first[std::min(number, 15u)];
        if (number >= 15) ++bucket[escape_bucket(number - 15)];
    }
    template <class Out>
    void price(Out&& out, size_t begin) const {
        const auto firsts = prices_of(first);
        const auto buckets = prices_of(bucket);
        for (size_t i = begin; i < out.size(); ++i) {
            const auto number = static_cast<uint32_t>(i - begin);
            if (number < 15) {
                out[i] = firsts[number];
            } else {
                const unsigned escape = escape_bucket(number - 15);
                out[i] = firsts[15] + buckets[escape] + kEscapeBits[escape] * kBit;
            }
        }
    }
};

// Counts the last four bits of new distances.
Counts low_counts(const std::vector<Sequence>& sequences) {
    Counts low{};
    RepeatOffsets repeat_offsets;
    for (const Sequence& sequence : sequences) {
        if (sequence.length == 0) break;
        const unsigned index = repeat_offsets.find(sequence.distance);
        const unsigned c = distance_class(sequence.distance);
        if (index == kNumRepeatOffsets && c >= 2) ++low[(sequence.distance - kClassBase[c]) & 15];
        repeat_offsets.use(index, sequence.distance);
    }
    return low;
}
std::array<uint32_t, 16> flat() {
    std::array<uint32_t, 16> prices;
    prices.fill(4 * kBit);
    return prices;
}
// Returns the amount that modelling them saves. A symbol takes longer to decode than extra bits, so 1/16 bit is
// subtracted.
int64_t gain_of(const Counts& low) {
    const auto prices = prices_of(low);
    int64_t gain = 0;
    for (size_t i = 0; i < 16; ++i) gain += int64_t{low[i]} * (4 * kBit - kBit / 16 - int64_t{prices[i]});
    return gain;
}

uint32_t price_of(const Part& part) {
    return kNibblePrecision * kBit - log2_of(part.frequency);
}

// Computes the price of every byte of a text as a literal at its position.
class LiteralPricer {
  public:
    LiteralPricer(Bytes text, uint32_t tax) : text_(text), tax_(tax), prices_(text.size()), models_(text.size()) {}

    // Prices the next `count` bytes. If distance > 0, a match of that distance precedes the first. The models learn
    // from the bytes if `learns`.
    void price(size_t count, uint32_t distance, bool learns) {
        for (size_t i = 0; i < count; ++i) {
            price_byte(i == 0 && distance > 0 ? text_[position_ - distance] : -1, learns);
        }
    }
    std::vector<uint16_t> take() { return std::move(prices_); }

  private:
    void price_byte(int expected, bool learns) {
        const uint8_t byte = text_[position_];
        const auto context = models_.context(previous_, expected);
        const HalfByte upper = models_.upper(context);
        const HalfByte lower = models_.lower(context, byte >> 4);
        const uint32_t price = price_of(upper.mixed().part(byte >> 4)) + price_of(lower.mixed().part(byte & 15));
        if (learns) {
            upper.learn(byte >> 4);
            lower.learn(byte & 15);
        }
        prices_[position_++] = static_cast<uint16_t>(price + tax_);
        previous_ = previous_ << 8 | byte;
    }

    Bytes text_;
    uint32_t tax_;
    size_t position_ = 0;
    uint32_t previous_ = 0;
    std::vector<uint16_t> prices_;
    LiteralModels models_;
};

}  // namespace

uint32_t log2_of(uint32_t x) {
    const unsigned exponent = std::bit_width(x) - 1;
    const uint32_t mantissa = exponent >= 11 ? x >> (exponent - 11) : x << (11 - exponent);
    return exponent * kBit + kLog2[mantissa - 2048];
}

Prices::Prices(Bytes text, const std::vector<Sequence>& sequences, uint32_t literal_tax) {
    LiteralPricer literals(text, literal_tax);
    NumberCounts runs;
    std::array<NumberCounts, 16> lengths{};
    std::array<Counts, 2> kinds{};
    std::array<Counts, kNumClasses> slots{};
    const Counts low = low_counts(sequences);
    RepeatOffsets repeat_offsets;
    bool after_match = false;
    for (const Sequence& sequence : sequences) {
        runs.add(sequence.num_literals);
        literals.price(sequence.num_literals, after_match ? repeat_offsets.values[0] : 0, true);
        if (sequence.length == 0) break;
        const unsigned index = repeat_offsets.find(sequence.distance);
        const unsigned c = distance_class(sequence.distance);
        const unsigned kind = index < kNumRepeatOffsets ? index : kNumRepeatOffsets + c;
        ++kinds[sequence.num_literals == 0][kind];
        lengths[kind].add(sequence.length - kMinLength);
        if (index == kNumRepeatOffsets) {
            const uint32_t offset = sequence.distance - kClassBase[c];
            ++slots[c][offset >> (2 * c)];
        }
        repeat_offsets.use(index, sequence.distance);
        literals.price(sequence.length, 0, false);
        after_match = true;
    }
    literal_ = literals.take();
    runs.price(run_, 0);
    for (size_t k = 0; k < 2; ++k) kind_[k] = prices_of(kinds[k]);
    for (size_t c = 0; c < kNumClasses; ++c) slot_[c] = prices_of(slots[c]);
    for (size_t kind = 0; kind < 16; ++kind) lengths[kind].price(length_[kind], kMinLength);
    low_ = gain_of(low) > 0 ? prices_of(low) : flat();
}

bool pays_to_model_low_bits(const std::vector<Sequence>& sequences) {
    return gain_of(low_counts(sequences)) > 0;
}

}  // namespace fastcompress::archive
