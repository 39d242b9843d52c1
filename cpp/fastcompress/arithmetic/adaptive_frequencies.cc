#include "fastcompress/arithmetic/adaptive_frequencies.h"

#include <algorithm>
#include <bit>
#include <string>

namespace fastcompress::arithmetic {
namespace {

constexpr uint32_t kMaxAdaptiveSymbols = uint32_t{1} << 22;
constexpr uint32_t kMaxIncrement = uint32_t{1} << 16;
constexpr size_t kSymbolsBetweenChecks = 4096;

unsigned precision_for(uint32_t num_symbols) {
    return std::clamp(static_cast<unsigned>(std::bit_width(num_symbols - 1)) + 8, 16u, kMaxPrecision);
}

}  // namespace

Status check(const FrequencyParams& params) {
    if (params.num_symbols < 1 || params.num_symbols > kMaxAdaptiveSymbols) {
        return invalid_argument("an alphabet of " + std::to_string(params.num_symbols) +
                                " symbols; it must have 1 to " + std::to_string(kMaxAdaptiveSymbols));
    }
    if (params.increment < 1 || params.increment > kMaxIncrement) {
        return invalid_argument("the increment is " + std::to_string(params.increment) + "; it must be 1 to " +
                                std::to_string(kMaxIncrement));
    }
    const uint32_t greatest = uint32_t{1} << precision_for(params.num_symbols);
    const uint32_t limit = params.limit == 0 ? greatest : params.limit;
    const uint32_t least = 2 * params.num_symbols + 2 * params.increment;
    if (limit < least || limit > greatest) {
        return invalid_argument("the limit of the sum of counts is " + std::to_string(limit) + "; with " +
                                std::to_string(params.num_symbols) + " symbols and increment " +
                                std::to_string(params.increment) + " it must be " + std::to_string(least) + " to " +
                                std::to_string(greatest));
    }
    return {};
}

AdaptiveFrequencies::AdaptiveFrequencies(const FrequencyParams& params)
    : num_symbols_(params.num_symbols),
      increment_(params.increment),
      limit_(params.limit),
      precision_(precision_for(params.num_symbols)),
      top_(std::bit_floor(params.num_symbols)),
      total_(params.num_symbols),
      counts_(params.num_symbols, 1),
      tree_(size_t{params.num_symbols} + 1) {
    if (limit_ == 0) limit_ = uint32_t{1} << precision_;
    for (uint32_t i = 1; i <= num_symbols_; ++i) tree_[i] = i & (0 - i);
}

uint32_t AdaptiveFrequencies::sum_below(uint32_t symbol) const {
    uint32_t sum = 0;
    for (uint32_t i = symbol; i > 0; i &= i - 1) sum += tree_[i];
    return sum;
}

AdaptiveFrequencies::Interval AdaptiveFrequencies::interval(uint32_t symbol) const {
    const uint64_t below = sum_below(symbol);
    const uint32_t begin = scaled(below);
    return {begin, scaled(below + counts_[symbol]) - begin};
}

uint32_t AdaptiveFrequencies::symbol_at(uint32_t quantile) const {
    // floor(a 2^P / T) <= q iff a <= ((q + 1) T - 1) / 2^P, rounded down.
    auto rest = static_cast<uint32_t>(((uint64_t{quantile} + 1) * total_ - 1) >> precision_);
    uint32_t symbol = 0;
    for (uint32_t step = top_; step > 0; step /= 2) {
        if (symbol + step <= num_symbols_ && tree_[symbol + step] <= rest) {
            symbol += step;
            rest -= tree_[symbol];
        }
    }
    return symbol;
}

void AdaptiveFrequencies::update(uint32_t symbol) {
    counts_[symbol] += increment_;
    total_ += increment_;
    for (uint32_t i = symbol + 1; i <= num_symbols_; i += i & (0 - i)) tree_[i] += increment_;
    if (total_ > limit_) halve();
}

// The sum is then at most (limit + increment + num_symbols) / 2, which is below the limit.
void AdaptiveFrequencies::halve() {
    total_ = 0;
    std::fill(tree_.begin(), tree_.end(), 0);
    for (uint32_t i = 1; i <= num_symbols_; ++i) {
        uint32_t& count = counts_[i - 1];
        count -= count / 2;
        total_ += count;
        tree_[i] += count;
        const uint32_t next = i + (i & (0 - i));
        if (next <= num_symbols_) tree_[next] += tree_[i];
    }
}

std::vector<uint32_t> AdaptiveFrequencies::cumulative() const {
    std::vector<uint32_t> ends(size_t{num_symbols_} + 1);
    uint64_t sum = 0;
    for (uint32_t symbol = 0; symbol < num_symbols_; ++symbol) {
        sum += counts_[symbol];
        ends[symbol + 1] = scaled(sum);
    }
    return ends;
}

void AdaptiveFrequencies::encode(std::span<const uint32_t> symbols, RangeEncoder& encoder) {
    encoder.reserve(symbols.size(), precision_);
    for (const uint32_t symbol : symbols) {
        const Interval part = interval(symbol);
        encoder.encode(part.cumulative, part.frequency, precision_);
        update(symbol);
    }
}

Status AdaptiveFrequencies::decode(RangeDecoder& decoder, std::span<uint32_t> symbols) {
    for (size_t i = 0; i < symbols.size(); ++i) {
        const uint32_t symbol = symbol_at(decoder.peek(precision_));
        const Interval part = interval(symbol);
        decoder.consume(part.cumulative, part.frequency);
        update(symbol);
        symbols[i] = symbol;
        if (i % kSymbolsBetweenChecks == 0 && !decoder.ok()) break;
    }
    if (!decoder.ok()) return malformed("not a code of an adaptive model: it is damaged or ends too early");
    return {};
}

}  // namespace fastcompress::arithmetic
