#include "fastcompress/arithmetic/quantizer.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>

#include "fastcompress/arithmetic/deal_kernels.h"
#include "fastcompress/arithmetic/exp2_tables.h"
#include "fastcompress/common/targets.h"

namespace fastcompress::arithmetic {
namespace {

constexpr int kScaledBits = 30;  // the greatest scaled weight is in [2^30, 2^31)
constexpr size_t kBlock = 32;    // weights looked at at once where a loop may end early

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

// The greatest in order, and the bits of all joined, whose sign tells of a negative one.
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

// 2^exponent, which is in the range of normal numbers.
template <class Weight>
FASTCOMPRESS_INLINED Weight power_of_two(int exponent) {
    constexpr int kBias = std::numeric_limits<Weight>::max_exponent - 1;
    constexpr int kMantissaBits = std::numeric_limits<Weight>::digits - 1;
    return std::bit_cast<Weight>(static_cast<Order<Weight>>(exponent + kBias) << kMantissaBits);
}

// floor(weights 2^shift) into `scaled`.
template <class Weight>
FASTCOMPRESS_INLINED void scale_weights(const Weight* weights, size_t count, int shift, uint32_t* scaled) {
    if constexpr (std::floating_point<Weight>) {
        // Powers of two that are in range: products are exact where they are not below 1.
        const Weight factor = power_of_two<Weight>(shift / 2);
        const Weight rest = power_of_two<Weight>(shift - shift / 2);
        if (-100 < shift && shift < 100) {
            const Weight both = factor * rest;
            for (size_t i = 0; i < count; ++i)
                scaled[i] = static_cast<uint32_t>(static_cast<int32_t>(weights[i] * both));
        } else {
            for (size_t i = 0; i < count; ++i) {
                scaled[i] = static_cast<uint32_t>(static_cast<int32_t>(weights[i] * factor * rest));
            }
        }
    } else if (shift >= 0) {
        for (size_t i = 0; i < count; ++i)
            scaled[i] = static_cast<uint32_t>(static_cast<uint64_t>(weights[i]) << shift);
    } else {
        for (size_t i = 0; i < count; ++i)
            scaled[i] = static_cast<uint32_t>(static_cast<uint64_t>(weights[i]) >> -shift);
    }
}

// The first scaled weight that is `greatest`, which one is.
FASTCOMPRESS_INLINED size_t first_equal(const uint32_t* scaled, size_t count, uint32_t greatest) {
    size_t begin = 0;
    for (; begin + kBlock <= count; begin += kBlock) {
        uint32_t found = 0;
        for (size_t i = 0; i < kBlock; ++i) found |= scaled[begin + i] == greatest ? 1u : 0u;
        if (found) break;
    }
    while (scaled[begin] != greatest) ++begin;
    return begin;
}

FASTCOMPRESS_INLINED uint32_t sum_of(const uint32_t* values, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
}

// 0, and the sums of the first 1 to V frequencies.
FASTCOMPRESS_INLINED void accumulate(const uint32_t* frequencies, size_t count, uint32_t* out) {
    uint32_t sum = 0;
    out[0] = 0;
    for (size_t i = 0; i < count; ++i) out[i + 1] = sum += frequencies[i];
}

// One bit of a number for each step that does not rise.
FASTCOMPRESS_INLINED uint32_t falls(const uint32_t* cumulative, size_t count) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; ++i) found |= cumulative[i] >= cumulative[i + 1] ? 1u : 0u;
    return found;
}

// Each kernel as the build compiles it, and for better instruction sets, and a way to call the best.
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
FASTCOMPRESS_KERNEL(fast_first_equal, first_equal)
FASTCOMPRESS_KERNEL(fast_sum, sum_of)
FASTCOMPRESS_KERNEL(fast_falls, falls)

uint64_t fast_wide_sum(const uint32_t* scaled, size_t count) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return sum_avx512(scaled, count);
    if (has_avx2()) return sum_avx2(scaled, count);
#endif
    return plain_sum(scaled, 0, count);
}

uint32_t fast_deal(const uint32_t* scaled, size_t count, uint32_t multiplier, uint32_t* frequencies) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return deal_avx512(scaled, count, multiplier, frequencies);
    if (has_avx2()) return deal_avx2(scaled, count, multiplier, frequencies);
#endif
    return plain_deal(scaled, 0, count, multiplier, frequencies);
}

template <class Weight>
Status bad_weights(const Weight* weights, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if constexpr (std::floating_point<Weight>) {
            if (std::isnan(weights[i]) || std::isinf(weights[i])) {
                return invalid_data("weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                                    "; weights must be finite");
            }
        }
        if (weights[i] < 0) {
            return invalid_data("weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                                "; weights must not be negative");
        }
    }
    return invalid_data("all weights are zero; at least one must be positive");
}

}  // namespace

unsigned default_precision(size_t num_symbols) {
    const auto bits = static_cast<unsigned>(std::bit_width(num_symbols - 1));
    return std::min(std::max(16u, bits + 8), kMaxPrecision);
}

std::optional<Status> check_table_size(size_t num_symbols, unsigned precision) {
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
    return std::nullopt;
}

Result<unsigned> check_cumulative(std::span<const uint32_t> cumulative) {
    if (cumulative.size() < 2) return invalid_data("a table needs two cumulative frequencies or more: 0 and the total");
    const uint32_t total = cumulative.back();
    if (cumulative.front() != 0 || !std::has_single_bit(total) || total > 1u << kMaxPrecision || total < 2) {
        return invalid_data("cumulative frequencies begin with " + std::to_string(cumulative.front()) +
                            " and end with " + std::to_string(total) +
                            "; they must begin with 0 and end with a power of two from 2 to 2^" +
                            std::to_string(kMaxPrecision) + ": make them with quantize()");
    }
    if (fast_falls(cumulative.data(), cumulative.size() - 1) != 0) {
        size_t i = 0;
        while (cumulative[i] < cumulative[i + 1]) ++i;
        return invalid_data("symbol " + std::to_string(i) +
                            " has no frequency: the cumulative ones before and after are " +
                            std::to_string(cumulative[i]) + " and " + std::to_string(cumulative[i + 1]) +
                            "; make them with quantize()");
    }
    return static_cast<unsigned>(std::countr_zero(total));
}

template <class Weight>
std::optional<Status> Quantizer::set_row(const Weight* weights) {
    Extent<Weight> extent = fast_extent(weights, num_symbols_);
    int exponent;  // the greatest weight is in [2^exponent, 2^(exponent + 1))
    if constexpr (std::floating_point<Weight>) {
        if (extent.joined < 0) {  // negative ones, or -0.0
            for (size_t i = 0; i < num_symbols_; ++i) {
                if (std::signbit(weights[i]) && weights[i] != 0) return bad_weights(weights, num_symbols_);
            }
        }
        if (extent.greatest >= OrderOf<Weight>::kInfinite || extent.greatest == 0) {
            return bad_weights(weights, num_symbols_);
        }
        exponent = std::ilogb(std::bit_cast<Weight>(extent.greatest));
    } else {
        if (extent.joined < 0 || extent.greatest == 0) return bad_weights(weights, num_symbols_);
        exponent = static_cast<int>(std::bit_width(static_cast<uint64_t>(extent.greatest))) - 1;
    }
    const int shift = kScaledBits - exponent;
    fast_scale(weights, num_symbols_, shift, &scaled_[0]);
    uint32_t greatest;
    const auto greatest_weight = std::bit_cast<Weight>(extent.greatest);
    scale_weights(&greatest_weight, 1, shift, &greatest);
    deal(greatest);
    return std::nullopt;
}

template std::optional<Status> Quantizer::set_row(const float*);
template std::optional<Status> Quantizer::set_row(const double*);
template std::optional<Status> Quantizer::set_row(const int32_t*);
template std::optional<Status> Quantizer::set_row(const int64_t*);
template std::optional<Status> Quantizer::set_row(const uint32_t*);
template std::optional<Status> Quantizer::set_row(const uint64_t*);

void Quantizer::set_row_of_logits(const int32_t* logits) {
    const auto greatest = static_cast<uint32_t>(*std::max_element(logits, logits + num_symbols_));
    for (size_t i = 0; i < num_symbols_; ++i) {
        scaled_[i] = exp2_of_minus(greatest - static_cast<uint32_t>(logits[i]));
    }
    deal(1u << kScaledBits);
}

void Quantizer::deal(uint32_t greatest) {
    const uint64_t total = uint64_t{1} << precision_;
    const uint64_t sum = fast_wide_sum(&scaled_[0], num_symbols_);
    const auto multiplier = static_cast<uint32_t>(((total - num_symbols_) << kShareShift) / sum);
    const uint32_t dealt = fast_deal(&scaled_[0], num_symbols_, multiplier, &frequencies_[0]);
    if (dealt == total) return;
    frequencies_[fast_first_equal(&scaled_[0], num_symbols_, greatest)] += static_cast<uint32_t>(total) - dealt;
}

void Quantizer::cumulative(uint32_t* out) const {
    accumulate(&frequencies_[0], num_symbols_, out);
}

Quantizer::Slot Quantizer::slot(size_t symbol) const {
    return {fast_sum(&frequencies_[0], symbol), frequencies_[symbol]};
}

size_t Quantizer::find(uint32_t quantile, Slot& slot) const {
    size_t symbol = 0;
    uint32_t before = 0;
    for (; symbol + kBlock <= num_symbols_; symbol += kBlock) {
        const uint32_t sum = fast_sum(&frequencies_[0] + symbol, kBlock);
        if (quantile - before < sum) break;
        before += sum;
    }
    while (quantile - before >= frequencies_[symbol]) before += frequencies_[symbol++];
    slot = {before, frequencies_[symbol]};
    return symbol;
}

}  // namespace fastcompress::arithmetic
