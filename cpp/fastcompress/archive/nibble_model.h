// Adaptive models of symbols 0 to 15, and mixes of several models.
//
// A model has 16 cumulative frequencies out of 2^15. They ascend strictly, so every symbol has a frequency of at least
// 1. After a symbol s, each moves by a part 2^-r of the way towards its target, its value if every other symbol had
// frequency 1 and s had all the rest: c[i] += (target[i] - c[i]) >> r, where the shift rounds down.
//   r = 4, from the uniform model, after the symbol 1:
//   c       0 2048 4096 6144  8192 ...      target  0 1 32754 32755 32756 ...
//   new c   0 1920 5887 7807  9727 ...      the frequency of 1 rises from 2048 to 3967
// Proof that they ascend strictly: targets ascend by at least 1, too, and c + ((t - c) >> r) never falls as c or t
// grow, and grows by at least 1 if both do.
//
// r is small for the first symbols of a model, so that it learns quickly, and constant later. A mix moves part of the
// way from one model towards another, also rounding down, so the same proof applies to it.
//
// c[0] is always 0, so its element holds the number of symbols seen instead.
//
// With SSE2, which every x86-64 processor has, a vector holds eight numbers; the scalar fallback gives the same
// results.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/targets.h"

#if defined(__SSE2__)
#define FASTCOMPRESS_SSE2_NIBBLES
#include "fastcompress/common/x86_intrinsics.h"
#endif

namespace fastcompress::archive {

inline constexpr unsigned kNibblePrecision = 15;
inline constexpr int kNibbleTotal = 1 << kNibblePrecision;

// r by the number of symbols seen; the last element applies to all larger numbers.
struct Rates {
    std::array<uint8_t, 256> shift;

    // floor(log2(seen + 2)), but at most `slowest`.
    static constexpr Rates up_to(unsigned slowest) {
        Rates rates{};
        for (unsigned seen = 0; seen < 256; ++seen) {
            const auto shift = static_cast<unsigned>(std::bit_width(seen + 2)) - 1;
            rates.shift[seen] = static_cast<uint8_t>(shift < slowest ? shift : slowest);
        }
        return rates;
    }
};

struct alignas(32) NibbleModel {
    std::array<uint16_t, 16> values;  // values[0]: number of symbols seen, at most 255; others: cumulative frequencies

    static constexpr NibbleModel uniform() {
        NibbleModel model{};
        for (unsigned i = 1; i < 16; ++i) model.values[i] = static_cast<uint16_t>(i << (kNibblePrecision - 4));
        return model;
    }
    unsigned num_seen() const { return values[0]; }
};

// The part of [0, 2^15) that belongs to a symbol.
struct Part {
    uint32_t cumulative;
    uint32_t frequency;
};

// The frequencies of a model or of a mix, for coding one symbol.
class ScalarNibbles {
  public:
    explicit ScalarNibbles(const NibbleModel& model) : values_(model.values) {}
    ScalarNibbles towards(const NibbleModel& to, uint16_t weight) const {
        ScalarNibbles mixed = *this;
        for (size_t i = 1; i < 16; ++i) {
            const int difference = int{to.values[i]} - values_[i];
            mixed.values_[i] = static_cast<uint16_t>(values_[i] + ((difference * weight) >> 16));
        }
        return mixed;
    }
    unsigned find(uint32_t quantile) const {
        unsigned symbol = 0;
        while (symbol < 15 && values_[symbol + 1] <= quantile) ++symbol;
        return symbol;
    }
    Part part(unsigned symbol) const {
        const uint32_t begin = symbol == 0 ? 0 : values_[symbol];
        const uint32_t end = symbol == 15 ? kNibbleTotal : values_[symbol + 1];
        return {begin, end - begin};
    }

  private:
    std::array<uint16_t, 16> values_;
};

inline void learn_scalar(NibbleModel& model, unsigned symbol, const Rates& rates) {
    const unsigned seen = model.values[0];
    for (unsigned i = 1; i < 16; ++i) {
        const int target = static_cast<int>(i) + (i > symbol ? kNibbleTotal - 16 : 0);
        const int value = model.values[i];
        model.values[i] = static_cast<uint16_t>(value + ((target - value) >> rates.shift[seen]));
    }
    model.values[0] = static_cast<uint16_t>(seen + (seen < 255));
}

#if defined(FASTCOMPRESS_SSE2_NIBBLES)

// The same with SSE2.
class Nibbles {
  public:
    explicit Nibbles(const NibbleModel& model) : Nibbles(load(model, 0), load(model, 8)) {}
    // Moves every number by weight / 2^16 of the way towards that of a model.
    Nibbles towards(const NibbleModel& to, uint16_t weight) const {
        return {towards(low_, load(to, 0), weight), towards(high_, load(to, 8), weight)};
    }
    unsigned find(uint32_t quantile) const {
        const __m128i q = _mm_set1_epi16(static_cast<int16_t>(quantile));
        const auto above = static_cast<uint32_t>(
            _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpgt_epi16(low_, q), _mm_cmpgt_epi16(high_, q))));
        return static_cast<unsigned>(std::countr_zero((above & 0xfffeu) | 0x10000u)) - 1;
    }
    Part part(unsigned symbol) const {
        alignas(16) uint16_t values[18];
        _mm_store_si128(reinterpret_cast<__m128i*>(values), low_);
        _mm_store_si128(reinterpret_cast<__m128i*>(values + 8), high_);
        values[0] = 0;
        values[16] = kNibbleTotal;
        return {values[symbol], uint32_t{values[symbol + 1]} - values[symbol]};
    }

  private:
    Nibbles(__m128i low, __m128i high) : low_(low), high_(high) {}
    static __m128i load(const NibbleModel& model, size_t i) {
        return _mm_load_si128(reinterpret_cast<const __m128i*>(model.values.data() + i));
    }
    // The instruction takes the weight as signed. A weight of 2^15 or more is read as 2^16 less, so the whole
    // difference is added once more.
    static __m128i towards(__m128i from, __m128i to, uint16_t weight) {
        const __m128i difference = _mm_sub_epi16(to, from);
        const __m128i w = _mm_set1_epi16(static_cast<int16_t>(weight));
        const __m128i step =
            _mm_add_epi16(_mm_mulhi_epi16(difference, w), _mm_and_si128(difference, _mm_srai_epi16(w, 15)));
        return _mm_add_epi16(from, step);
    }
    __m128i low_;
    __m128i high_;
};

inline void learn(NibbleModel& model, unsigned symbol, const Rates& rates) {
    const unsigned seen = model.values[0];
    const __m128i shift = _mm_cvtsi32_si128(rates.shift[seen]);
    const __m128i s = _mm_set1_epi16(static_cast<int16_t>(symbol));
    auto* const values = reinterpret_cast<__m128i*>(model.values.data());
    const __m128i index[2] = {_mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7), _mm_setr_epi16(8, 9, 10, 11, 12, 13, 14, 15)};
    for (int k = 0; k < 2; ++k) {
        const __m128i above = _mm_and_si128(_mm_cmpgt_epi16(index[k], s), _mm_set1_epi16(kNibbleTotal - 16));
        const __m128i target = _mm_add_epi16(index[k], above);
        const __m128i value = _mm_load_si128(values + k);
        _mm_store_si128(values + k, _mm_add_epi16(value, _mm_sra_epi16(_mm_sub_epi16(target, value), shift)));
    }
    model.values[0] = static_cast<uint16_t>(seen + (seen < 255));
}

#else

using Nibbles = ScalarNibbles;

inline void learn(NibbleModel& model, unsigned symbol, const Rates& rates) {
    learn_scalar(model, symbol, rates);
}

#endif

}  // namespace fastcompress::archive
