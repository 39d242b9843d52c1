// Sums of 32-bit numbers in 64 bits, with SIMD written by hand: compilers vectorize this loop poorly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fastcompress/common/targets.h"
#if defined(FASTCOMPRESS_AVX2)
#include "fastcompress/common/x86_intrinsics.h"
#endif

namespace fastcompress::arithmetic {

// The sum of the values before a place among them, and of all.
struct SplitSum {
    uint64_t before, all;
};

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

FASTCOMPRESS_AVX512 FASTCOMPRESS_INLINED __m512i wide_pairs_avx512(__m512i x) {
    return _mm512_add_epi64(_mm512_and_si512(x, _mm512_set1_epi64(0xffffffff)), _mm512_srli_epi64(x, 32));
}
// Adds values to eight sums, those that are left over after whole vectors under a mask.
FASTCOMPRESS_AVX512 FASTCOMPRESS_INLINED __m512i add_wide_avx512(__m512i sums, const uint32_t* values, size_t count) {
    size_t i = 0;
    for (; i + 16 <= count; i += 16) sums = _mm512_add_epi64(sums, wide_pairs_avx512(_mm512_loadu_si512(values + i)));
    if (i < count) {
        const auto mask = static_cast<__mmask16>((1 << (count - i)) - 1);
        sums = _mm512_add_epi64(sums, wide_pairs_avx512(_mm512_maskz_loadu_epi32(mask, values + i)));
    }
    return sums;
}
FASTCOMPRESS_AVX512 FASTCOMPRESS_INLINED uint64_t joined_avx512(__m512i sums) {
    const __m256i four = _mm256_add_epi64(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(two)) + static_cast<uint64_t>(_mm_extract_epi64(two, 1));
}

FASTCOMPRESS_AVX512 inline uint64_t wide_sum_avx512(const uint32_t* values, size_t count) {
    return joined_avx512(add_wide_avx512(_mm512_setzero_si512(), values, count));
}

template <size_t kBlock>
FASTCOMPRESS_AVX2 uint64_t block_sums_avx2(const uint32_t* values, size_t count, uint64_t* sums) {
    uint64_t all = 0;
    size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) all += * sums++ = wide_sum_avx2(values + i, kBlock);
    if (i < count) all += * sums = wide_sum_avx2(values + i, count - i);
    return all;
}

template <size_t kBlock>
FASTCOMPRESS_AVX512 uint64_t block_sums_avx512(const uint32_t* values, size_t count, uint64_t* sums) {
    uint64_t all = 0;
    size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) all += * sums++ = wide_sum_avx512(values + i, kBlock);
    if (i < count) all += * sums = wide_sum_avx512(values + i, count - i);
    return all;
}

// The values up to the vector that contains `split` are summed once, and all loads stay aligned if `values` is.
FASTCOMPRESS_AVX2 inline SplitSum split_sum_avx2(const uint32_t* values, size_t split, size_t count) {
    const size_t whole = split / 8 * 8;
    const uint64_t sum = wide_sum_avx2(values, whole);
    return {sum + wide_sum_scalar(values + whole, split - whole), sum + wide_sum_avx2(values + whole, count - whole)};
}

FASTCOMPRESS_AVX512 inline SplitSum split_sum_avx512(const uint32_t* values, size_t split, size_t count) {
    const size_t whole = split / 16 * 16;
    const __m512i sums = add_wide_avx512(_mm512_setzero_si512(), values, whole);
    return {joined_avx512(add_wide_avx512(sums, values + whole, split - whole)),
            joined_avx512(add_wide_avx512(sums, values + whole, count - whole))};
}

#endif

inline uint64_t wide_sum(const uint32_t* values, size_t count) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return wide_sum_avx512(values, count);
    if (has_avx2()) return wide_sum_avx2(values, count);
#endif
    return wide_sum_scalar(values, count);
}

inline SplitSum split_sum(const uint32_t* values, size_t split, size_t count) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return split_sum_avx512(values, split, count);
    if (has_avx2()) return split_sum_avx2(values, split, count);
#endif
    const uint64_t before = wide_sum_scalar(values, split);
    return {before, before + wide_sum_scalar(values + split, count - split)};
}

// Writes the sum of each block of kBlock values, the last of which may be shorter, and returns the sum of all. The size
// is a constant so that compilers unroll the sum of a block.
template <size_t kBlock>
uint64_t block_sums(const uint32_t* values, size_t count, uint64_t* sums) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return block_sums_avx512<kBlock>(values, count, sums);
    if (has_avx2()) return block_sums_avx2<kBlock>(values, count, sums);
#endif
    uint64_t all = 0;
    for (size_t i = 0; i < count; i += kBlock)
        all += * sums++ = wide_sum_scalar(values + i, count - i < kBlock ? count - i : kBlock);
    return all;
}

}  // namespace fastcompress::arithmetic
