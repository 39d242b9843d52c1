#include "fastcompress/arithmetic/quantizer.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

#include "fastcompress/arithmetic/exp2_tables.h"
#include "fastcompress/arithmetic/wide_sum.h"
#include "fastcompress/common/read_once.h"
#include "fastcompress/common/targets.h"

namespace fastcompress::arithmetic {
namespace {

constexpr int kMaxScaledBits = 30;
// Sums of scaled weights are below 2^39, and (2^P - V) 2^39 < 2^63.
constexpr int kSumBits = 39;
constexpr size_t kBlock = 64;  // weights summed at once on the way to a symbol, a multiple of kSmallBlock
constexpr size_t kSmallBlock = 16;

// Weights as integers that sort alike, if none is negative: floats by their bits.
template <class Weight>
struct OrderOf;
template <>
struct OrderOf<float> {
    using Type = int32_t;
    static constexpr int32_t kInfinite = 0x7f800000;
};
template <>
struct OrderOf<double> {
    using Type = int64_t;
    static constexpr int64_t kInfinite = 0x7ff0000000000000;
};
template <std::integral T>
struct OrderOf<T> {
    using Type = T;
};
template <class Weight>
using Order = typename OrderOf<Weight>::Type;

// The largest value, and the bitwise or of all values, which is negative if one of them is.
template <class Weight>
struct Extent {
    Order<Weight> greatest;
    Order<Weight> joined;
};

template <class Weight>
FASTCOMPRESS_INLINED Extent<Weight> extent_of(const Weight* weights, size_t count) {
    Extent<Weight> extent = {0, 0};
    for (size_t i = 0; i < count; ++i) {
        const auto order = std::bit_cast<Order<Weight>>(weights[i]);
        extent.greatest = order > extent.greatest ? order : extent.greatest;
        extent.joined |= order;
    }
    return extent;
}

// Returns 2^exponent. Requires an exponent in the range of normal numbers.
template <class Weight>
constexpr Weight power_of_two(int exponent) {
    constexpr int kBias = std::numeric_limits<Weight>::max_exponent - 1;
    constexpr int kMantissaBits = std::numeric_limits<Weight>::digits - 1;
    return std::bit_cast<Weight>(static_cast<Order<Weight>>(exponent + kBias) << kMantissaBits);
}

// Returns e for a float in [2^e, 2^(e + 1)), given by its bits.
template <class Bits>
int exponent_of(Bits greatest) {
    using Weight = std::conditional_t<sizeof(Bits) == 4, float, double>;
    constexpr int kMantissaBits = std::numeric_limits<Weight>::digits - 1;
    const auto field = static_cast<int>(greatest >> kMantissaBits);
    if (field > 0) return field - (std::numeric_limits<Weight>::max_exponent - 1);
    const auto num_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(greatest)));
    return std::numeric_limits<Weight>::min_exponent - 1 - kMantissaBits + num_bits - 1;
}

// Writes floor(weights 2^shift) to `scaled`.
template <class Weight>
FASTCOMPRESS_INLINED void scale_weights(const Weight* weights, size_t count, int shift, uint32_t* scaled) {
    if constexpr (std::floating_point<Weight>) {
        // Products of at least 1 are exact. (Weights for which the factor would overflow use scale_by_bits.)
        const auto factor = power_of_two<Weight>(shift);
        for (size_t i = 0; i < count; ++i) {
            scaled[i] = static_cast<uint32_t>(static_cast<int32_t>(weights[i] * factor));
        }
    } else if (shift >= 0) {
        for (size_t i = 0; i < count; ++i) {
            scaled[i] = static_cast<uint32_t>(static_cast<uint64_t>(weights[i]) << shift);
        }
    } else {
        for (size_t i = 0; i < count; ++i) {
            scaled[i] = static_cast<uint32_t>(static_cast<uint64_t>(weights[i]) >> -shift);
        }
    }
}

// The same by the bits of floats. For floats that may be subnormal, which a processor treats as zero if the program has
// set it so.
template <class Weight>
void scale_by_bits(const Weight* weights, size_t count, int shift, uint32_t* scaled) {
    constexpr int kMantissaBits = std::numeric_limits<Weight>::digits - 1;
    constexpr int kLeastExponent = std::numeric_limits<Weight>::min_exponent - 1;  // of normal numbers
    for (size_t i = 0; i < count; ++i) {
        const auto bits = static_cast<uint64_t>(std::bit_cast<Order<Weight>>(weights[i]));
        const auto field =
            static_cast<int>(bits >> kMantissaBits & (2 * std::numeric_limits<Weight>::max_exponent - 1));
        uint64_t mantissa = bits & ((uint64_t{1} << kMantissaBits) - 1);
        if (field > 0) mantissa |= uint64_t{1} << kMantissaBits;
        // The weight is mantissa 2^(exponent - kMantissaBits).
        const int up = kLeastExponent + std::max(field, 1) - 1 - kMantissaBits + shift;
        scaled[i] = up >= 64 || up <= -64 ? 0 : static_cast<uint32_t>(up >= 0 ? mantissa << up : mantissa >> -up);
    }
}

// Returns 1 if some cumulative frequency is not larger than the one before it, else 0.
FASTCOMPRESS_INLINED uint32_t falls(const uint32_t* cumulative, size_t count) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; ++i) found |= cumulative[i] >= cumulative[i + 1] ? 1u : 0u;
    return found;
}

// Defines each kernel for the instruction set of the build and for better ones, and a function that calls the best.
#if defined(FASTCOMPRESS_AVX2)
#if defined(__clang__)
#define FASTCOMPRESS_WIDE FASTCOMPRESS_AVX512
#else
#define FASTCOMPRESS_WIDE FASTCOMPRESS_AVX512 __attribute__((target("prefer-vector-width=512")))
#endif
#define FASTCOMPRESS_KERNEL(name, body)                          \
    FASTCOMPRESS_WIDE decltype(auto) name##_avx512(auto... in) { \
        return body(in...);                                      \
    }                                                            \
    FASTCOMPRESS_AVX2 decltype(auto) name##_avx2(auto... in) {   \
        return body(in...);                                      \
    }                                                            \
    decltype(auto) name(auto... in) {                            \
        if (has_avx512()) return name##_avx512(in...);           \
        if (has_avx2()) return name##_avx2(in...);               \
        return body(in...);                                      \
    }
#else
#define FASTCOMPRESS_KERNEL(name, body) \
    decltype(auto) name(auto... in) {   \
        return body(in...);             \
    }
#endif
FASTCOMPRESS_KERNEL(fast_extent, extent_of)
FASTCOMPRESS_KERNEL(fast_scale, scale_weights)
FASTCOMPRESS_KERNEL(fast_falls, falls)

// Whether a weight is negative, by its bits: -0.0 is not, and a negative subnormal number is, even if the processor
// treats it as zero.
template <class Weight>
bool is_negative(Weight weight) {
    if constexpr (std::integral<Weight>) {
        return weight < 0;
    } else {
        const auto order = std::bit_cast<Order<Weight>>(weight);
        return order < 0 && order != std::numeric_limits<Order<Weight>>::min();
    }
}

}  // namespace

unsigned default_precision(size_t num_symbols) {
    const auto bits = static_cast<unsigned>(std::bit_width(num_symbols - 1));
    return std::min(std::max(16u, bits + 8), kMaxPrecision);
}

Status check_table_size(size_t num_symbols, unsigned precision) {
    if (num_symbols == 0 || num_symbols > kMaxSymbols) {
        return invalid_argument("an alphabet of " + std::to_string(num_symbols) + " symbols; it must have 1 to " +
                                std::to_string(kMaxSymbols));
    }
    if (precision < 1 || precision > kMaxPrecision) {
        return invalid_argument("precision is " + std::to_string(precision) + "; it must be 1 to " +
                                std::to_string(kMaxPrecision) + " bits");
    }
    if (num_symbols > size_t{1} << precision) {
        return invalid_argument(std::to_string(num_symbols) + " symbols are too many for frequencies that sum to 2^" +
                                std::to_string(precision) + "; raise precision (at most " +
                                std::to_string(kMaxPrecision) + ")");
    }
    return {};
}

Result<unsigned> check_cumulative(std::span<const uint32_t> cumulative) {
    if (cumulative.size() < 2) return invalid_data("a table needs two cumulative frequencies or more: 0 and the total");
    const uint32_t total = read_once(cumulative.back());
    if (cumulative.front() != 0 || !std::has_single_bit(total) || total > 1u << kMaxPrecision || total < 2) {
        return invalid_data("cumulative frequencies begin with " + std::to_string(cumulative.front()) +
                            " and end with " + std::to_string(total) +
                            "; they must begin with 0 and end with a power of two from 2 to 2^" +
                            std::to_string(kMaxPrecision) + ": make them with quantize()");
    }
    if (fast_falls(cumulative.data(), cumulative.size() - 1) != 0) {
        size_t i = 0;
        while (i + 2 < cumulative.size() && cumulative[i] < cumulative[i + 1]) ++i;  // they may change meanwhile
        return invalid_data("symbol " + std::to_string(i) +
                            " has no frequency: the cumulative ones before and after are " +
                            std::to_string(cumulative[i]) + " and " + std::to_string(cumulative[i + 1]) +
                            "; make them with quantize()");
    }
    return static_cast<unsigned>(std::countr_zero(total));
}

Quantizer::Quantizer(size_t num_symbols, unsigned precision)
    : num_symbols_(num_symbols),
      precision_(precision),
      scaled_bits_(std::min(kMaxScaledBits, kSumBits - 1 - static_cast<int>(std::bit_width(num_symbols - 1)))),
      scaled_(num_symbols),
      sums_((num_symbols + kBlock - 1) / kBlock) {}

template <class Weight>
bool Quantizer::try_set_row(const Weight* weights) {
    const Extent<Weight> extent = fast_extent(weights, num_symbols_);
    int exponent;  // the largest weight is in [2^exponent, 2^(exponent + 1))
    if constexpr (std::floating_point<Weight>) {
        if (extent.joined < 0) {  // some are negative or -0.0
            for (size_t i = 0; i < num_symbols_; ++i) {
                if (is_negative(weights[i])) return false;
            }
        }
        if (extent.greatest >= OrderOf<Weight>::kInfinite || extent.greatest == 0) return false;
        exponent = exponent_of(extent.greatest);
        // A subnormal weight scales to 0, unless the largest weight is close to subnormal.
        if (exponent < std::numeric_limits<Weight>::min_exponent + kMaxScaledBits) {
            scale_by_bits(weights, num_symbols_, scaled_bits_ - exponent, &scaled_[0]);
            return true;
        }
    } else {
        if (extent.joined < 0 || extent.greatest == 0) return false;
        exponent = static_cast<int>(std::bit_width(static_cast<uint64_t>(extent.greatest))) - 1;
    }
    fast_scale(weights, num_symbols_, scaled_bits_ - exponent, &scaled_[0]);
    return true;
}

template <class Weight>
Status Quantizer::row_problem(const Weight* weights) const {
    for (size_t i = 0; i < num_symbols_; ++i) {
        if constexpr (std::floating_point<Weight>) {
            if (std::isnan(weights[i]) || std::isinf(weights[i])) {
                return invalid_data("weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                                    "; weights must be finite");
            }
        }
        if (is_negative(weights[i])) {
            return invalid_data("weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                                "; weights must not be negative");
        }
    }
    return invalid_data("all weights are zero; at least one must be positive");
}

template bool Quantizer::try_set_row(const float*);
template bool Quantizer::try_set_row(const double*);
template bool Quantizer::try_set_row(const int32_t*);
template bool Quantizer::try_set_row(const int64_t*);
template bool Quantizer::try_set_row(const uint32_t*);
template bool Quantizer::try_set_row(const uint64_t*);
template Status Quantizer::row_problem(const float*) const;
template Status Quantizer::row_problem(const double*) const;
template Status Quantizer::row_problem(const int32_t*) const;
template Status Quantizer::row_problem(const int64_t*) const;
template Status Quantizer::row_problem(const uint32_t*) const;
template Status Quantizer::row_problem(const uint64_t*) const;

void Quantizer::set_row_of_logits(const int32_t* logits) {
    const auto greatest = static_cast<uint32_t>(*std::max_element(logits, logits + num_symbols_));
    for (size_t i = 0; i < num_symbols_; ++i) {
        const uint32_t weight = exp2_of_minus(greatest - static_cast<uint32_t>(logits[i]));
        scaled_[i] = weight >> (kMaxScaledBits - scaled_bits_);
    }
}

uint64_t Quantizer::multiplier(uint64_t sum) const {
    // A sum is 0 only if another thread has set all weights to 0 since set_row() examined them.
    return (((uint64_t{1} << precision_) - num_symbols_) << kSumBits) / std::max<uint64_t>(sum, 1);
}

uint32_t Quantizer::cumulative_of(size_t symbol, uint64_t sum_before, uint64_t multiplier) const {
    if (symbol == num_symbols_) return 1u << precision_;
    return static_cast<uint32_t>(symbol + (sum_before * multiplier >> kSumBits));
}

void Quantizer::cumulative(uint32_t* out) const {
    const uint64_t m = multiplier(wide_sum(&scaled_[0], num_symbols_));
    uint64_t before = 0;
    for (size_t i = 0; i < num_symbols_; ++i) {
        out[i] = static_cast<uint32_t>(i + (before * m >> kSumBits));
        before += scaled_[i];
    }
    out[num_symbols_] = 1u << precision_;
}

Quantizer::Slot Quantizer::slot(size_t symbol) const {
    const auto [before, all] = split_sum(&scaled_[0], symbol, num_symbols_);
    const uint64_t m = multiplier(all);
    const uint32_t begin = cumulative_of(symbol, before, m);
    return {begin, cumulative_of(symbol + 1, before + scaled_[symbol], m) - begin};
}

size_t Quantizer::find(uint32_t quantile, Slot& slot) {
    const uint64_t m = multiplier(block_sums<kBlock>(&scaled_[0], num_symbols_, sums_.data()));
    size_t symbol = 0;
    uint64_t before = 0;
    // Skips large blocks that end at or before the quantile, then small ones, then symbols.
    const auto skip = [&](const uint64_t* sums, size_t block, size_t end) {
        for (; symbol + block < end; symbol += block) {
            const uint64_t after = before + *sums++;
            if (cumulative_of(symbol + block, after, m) > quantile) break;
            before = after;
        }
    };
    skip(sums_.data(), kBlock, num_symbols_);
    const size_t end = std::min(symbol + kBlock, num_symbols_);
    if (end - symbol > kSmallBlock) {
        uint64_t small_sums[kBlock / kSmallBlock];
        block_sums<kSmallBlock>(&scaled_[symbol], end - symbol, small_sums);
        skip(small_sums, kSmallBlock, end);
    }
    for (uint32_t begin = cumulative_of(symbol, before, m);; ++symbol) {
        before += scaled_[symbol];
        const uint32_t next = cumulative_of(symbol + 1, before, m);
        if (next > quantile) {
            slot = {begin, next - begin};
            return symbol;
        }
        begin = next;
    }
}

}  // namespace fastcompress::arithmetic
