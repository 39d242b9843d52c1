// Sums of 32-bit numbers in 64 bits, with SIMD written by hand: compilers vectorize this loop poorly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fastcompress/common/targets.h"
#if defined(FASTCOMPRESS_AVX2)
#include "fastcompress/common/x86_intrinsics.h"
#endif

namespace fastcompress::arithmetic {

inline uint64_t wide_sum_scalar(const uint32_t* values, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
}

#if defined(FASTCOMPRESS_AVX2)

// The numbers of a vector are summed as the lower and the upper halves of 64-bit lanes.
FASTCOMPRESS_AVX2 inline uint64_t wide_sum_avx2(const uint32_t* values, size_t count) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i even = _mm256_setzero_si256(), odd = even;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
        even = _mm256_add_epi64(even, _mm256_and_si256(x, low));
        odd = _mm256_add_epi64(odd, _mm256_srli_epi64(x, 32));
    }
    alignas(32) uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi64(even, odd));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + wide_sum_scalar(values + i, count - i);
}

FASTCOMPRESS_AVX512 inline uint64_t wide_sum_avx512(const uint32_t* values, size_t count) {
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    __m512i even = _mm512_setzero_si512(), odd = even;
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i x = _mm512_loadu_si512(values + i);
        even = _mm512_add_epi64(even, _mm512_and_si512(x, low));
        odd = _mm512_add_epi64(odd, _mm512_srli_epi64(x, 32));
    }
    if (i < count) {
        const __m512i x = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1 << (count - i)) - 1), values + i);
        even = _mm512_add_epi64(even, _mm512_and_si512(x, low));
        odd = _mm512_add_epi64(odd, _mm512_srli_epi64(x, 32));
    }
    const __m512i eight = _mm512_add_epi64(even, odd);
    const __m256i four = _mm256_add_epi64(_mm512_castsi512_si256(eight), _mm512_extracti64x4_epi64(eight, 1));
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(two)) + static_cast<uint64_t>(_mm_extract_epi64(two, 1));
}

FASTCOMPRESS_AVX2 inline void block_sums_avx2(const uint32_t* values, size_t count, size_t block, uint64_t* sums) {
    for (size_t i = 0; i < count; i += block)
        *sums++ = wide_sum_avx2(values + i, count - i < block ? count - i : block);
}

FASTCOMPRESS_AVX512 inline void block_sums_avx512(const uint32_t* values, size_t count, size_t block, uint64_t* sums) {
    for (size_t i = 0; i < count; i += block) {
        *sums++ = wide_sum_avx512(values + i, count - i < block ? count - i : block);
    }
}

#endif

inline uint64_t wide_sum(const uint32_t* values, size_t count) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return wide_sum_avx512(values, count);
    if (has_avx2()) return wide_sum_avx2(values, count);
#endif
    return wide_sum_scalar(values, count);
}

// The sum of each block of `block` values, the last of which may be shorter.
inline void block_sums(const uint32_t* values, size_t count, size_t block, uint64_t* sums) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return block_sums_avx512(values, count, block, sums);
    if (has_avx2()) return block_sums_avx2(values, count, block, sums);
#endif
    for (size_t i = 0; i < count; i += block)
        *sums++ = wide_sum_scalar(values + i, count - i < block ? count - i : block);
}

}  // namespace fastcompress::arithmetic
