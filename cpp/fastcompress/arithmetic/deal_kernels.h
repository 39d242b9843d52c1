// The two loops of the quantizer that compilers do not turn into good vector code, by hand for AVX2 and AVX-512: widening sums,
// and 32 by 32 bit products of which the upper part is kept. The plain ones say what they compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fastcompress/common/targets.h"
#if defined(FASTCOMPRESS_AVX2)
#include "fastcompress/common/x86_intrinsics.h"
#endif

namespace fastcompress::arithmetic {

inline constexpr unsigned kShareShift =
    37;  // of the multiplier m: (2^24) 2^37 < 2^63, and a scaled weight times m < 2^62

// The sum of all scaled weights.
inline uint64_t plain_sum(const uint32_t* scaled, size_t begin, size_t count) {
    uint64_t sum = 0;
    for (size_t i = begin; i < count; ++i) sum += scaled[i];
    return sum;
}

// frequencies[i] = 1 + floor(scaled[i] multiplier / 2^37), for scaled weights and multipliers below 2^31; their sum.
inline uint32_t plain_deal(const uint32_t* scaled, size_t begin, size_t count, uint32_t multiplier,
                           uint32_t* frequencies) {
    uint32_t sum = 0;
    for (size_t i = begin; i < count; ++i) {
        frequencies[i] = static_cast<uint32_t>(uint64_t{scaled[i]} * multiplier >> kShareShift) + 1;
        sum += frequencies[i];
    }
    return sum;
}

#if defined(FASTCOMPRESS_AVX2)

FASTCOMPRESS_AVX2 inline uint64_t sum_avx2(const uint32_t* scaled, size_t count) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i even = _mm256_setzero_si256(), odd = even;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scaled + i));
        even = _mm256_add_epi64(even, _mm256_and_si256(x, low));
        odd = _mm256_add_epi64(odd, _mm256_srli_epi64(x, 32));
    }
    alignas(32) uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi64(even, odd));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + plain_sum(scaled, i, count);
}

FASTCOMPRESS_AVX2 inline uint32_t deal_avx2(const uint32_t* scaled, size_t count, uint32_t multiplier,
                                            uint32_t* frequencies) {
    const __m256i m = _mm256_set1_epi64x(multiplier), one = _mm256_set1_epi32(1);
    __m256i sum = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scaled + i));
        const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(x, m), kShareShift);
        const __m256i odd = _mm256_srli_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), m), kShareShift - 32);
        const __m256i f = _mm256_add_epi32(_mm256_blend_epi32(even, odd, 0xaa), one);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(frequencies + i), f);
        sum = _mm256_add_epi32(sum, f);
    }
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    uint32_t total = 0;
    for (const uint32_t lane : lanes) total += lane;
    return total + plain_deal(scaled, i, count, multiplier, frequencies);
}

FASTCOMPRESS_AVX512 inline uint64_t sum_avx512(const uint32_t* scaled, size_t count) {
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    __m512i even = _mm512_setzero_si512(), odd = even;
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i x = _mm512_loadu_si512(scaled + i);
        even = _mm512_add_epi64(even, _mm512_and_si512(x, low));
        odd = _mm512_add_epi64(odd, _mm512_srli_epi64(x, 32));
    }
    return static_cast<uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(even, odd))) + plain_sum(scaled, i, count);
}

FASTCOMPRESS_AVX512 inline uint32_t deal_avx512(const uint32_t* scaled, size_t count, uint32_t multiplier,
                                                uint32_t* frequencies) {
    const __m512i m = _mm512_set1_epi64(multiplier), one = _mm512_set1_epi32(1);
    __m512i sum = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i x = _mm512_loadu_si512(scaled + i);
        const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(x, m), kShareShift);
        const __m512i odd = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), m), kShareShift - 32);
        const __m512i f = _mm512_add_epi32(_mm512_mask_blend_epi32(0xaaaa, even, odd), one);
        _mm512_storeu_si512(frequencies + i, f);
        sum = _mm512_add_epi32(sum, f);
    }
    return static_cast<uint32_t>(_mm512_reduce_add_epi32(sum)) + plain_deal(scaled, i, count, multiplier, frequencies);
}

#endif

}  // namespace fastcompress::arithmetic
