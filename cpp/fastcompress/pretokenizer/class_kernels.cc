#include "fastcompress/pretokenizer/class_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "fastcompress/common/targets.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "fastcompress/common/x86_intrinsics.h"
#define FASTCOMPRESS_X86 1
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#define FASTCOMPRESS_NEON 1
#endif

namespace fastcompress::pretokenizer {

#if defined(FASTCOMPRESS_X86)

// Functions up to the end of the region may use these instructions. They are called only if the machine has them.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#endif
namespace avx2 {
using Vector = __m256i;
constexpr size_t kSize = 32;
inline Vector load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline Vector splat(int byte) {
    return _mm256_set1_epi8(static_cast<char>(byte));
}
inline Vector table(const uint8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}
inline Vector lookup(Vector table, Vector indices) {  // by the lower four bits; 0 for bytes that are not ASCII
    return _mm256_shuffle_epi8(table, indices);
}
inline Vector high_nibbles(Vector v) {
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), splat(0x0f));
}
inline Vector add(Vector a, Vector b) {
    return _mm256_add_epi8(a, b);
}
inline Vector subtract(Vector a, Vector b) {
    return _mm256_sub_epi8(a, b);
}
inline Vector equal(Vector a, Vector b) {
    return _mm256_cmpeq_epi8(a, b);
}
inline Vector minimum(Vector a, Vector b) {
    return _mm256_min_epu8(a, b);
}
inline Vector any(Vector a, Vector b) {
    return _mm256_or_si256(a, b);
}
inline Vector both(Vector a, Vector b) {
    return _mm256_and_si256(a, b);
}
inline Vector except(Vector a, Vector b) {
    return _mm256_andnot_si256(b, a);
}
inline uint64_t mask(Vector v) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(v));
}
#include "fastcompress/pretokenizer/class_kernels.inc"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target(FASTCOMPRESS_AVX512_NAMES))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")
#endif
namespace avx512 {
#include "fastcompress/pretokenizer/class_kernels_avx512.inc"
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#elif defined(FASTCOMPRESS_NEON)

namespace neon {
using Vector = uint8x16_t;
constexpr size_t kSize = 16;
inline Vector load(const uint8_t* p) {
    return vld1q_u8(p);
}
inline Vector splat(int byte) {
    return vdupq_n_u8(static_cast<uint8_t>(byte));
}
inline Vector table(const uint8_t* bytes) {
    return vld1q_u8(bytes);
}
inline Vector lookup(Vector table, Vector indices) {
    return vqtbl1q_u8(table, vandq_u8(indices, vdupq_n_u8(0x0f)));
}
inline Vector high_nibbles(Vector v) {
    return vshrq_n_u8(v, 4);
}
inline Vector add(Vector a, Vector b) {
    return vaddq_u8(a, b);
}
inline Vector subtract(Vector a, Vector b) {
    return vsubq_u8(a, b);
}
inline Vector equal(Vector a, Vector b) {
    return vceqq_u8(a, b);
}
inline Vector minimum(Vector a, Vector b) {
    return vminq_u8(a, b);
}
inline Vector any(Vector a, Vector b) {
    return vorrq_u8(a, b);
}
inline Vector both(Vector a, Vector b) {
    return vandq_u8(a, b);
}
inline Vector except(Vector a, Vector b) {
    return vbicq_u8(a, b);
}
inline uint64_t mask(Vector v) {
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(vcgeq_u8(v, vdupq_n_u8(0x80)), bit);
    return vaddv_u8(vget_low_u8(bits)) | uint64_t{vaddv_u8(vget_high_u8(bits))} << 8;
}
#include "fastcompress/pretokenizer/class_kernels.inc"
}  // namespace neon

#endif

#if !defined(FASTCOMPRESS_NEON)
namespace scalar {  // one byte at a time, as vectors of one
using Vector = uint8_t;
constexpr size_t kSize = 1;
inline Vector load(const uint8_t* p) {
    return *p;
}
inline Vector splat(int byte) {
    return static_cast<Vector>(byte);
}
inline const uint8_t* table(const uint8_t* bytes) {
    return bytes;
}
inline Vector lookup(const uint8_t* table, Vector index) {
    return table[index & 15];
}
inline Vector high_nibbles(Vector v) {
    return v >> 4;
}
inline Vector add(Vector a, Vector b) {
    return static_cast<Vector>(a + b);
}
inline Vector subtract(Vector a, Vector b) {
    return static_cast<Vector>(a - b);
}
inline Vector equal(Vector a, Vector b) {
    return a == b ? Vector{0xff} : Vector{0};
}
inline Vector minimum(Vector a, Vector b) {
    return std::min(a, b);
}
inline Vector any(Vector a, Vector b) {
    return a | b;
}
inline Vector both(Vector a, Vector b) {
    return a & b;
}
inline Vector except(Vector a, Vector b) {
    return static_cast<Vector>(a & ~b);
}
inline uint64_t mask(Vector v) {
    return v >> 7;
}
#include "fastcompress/pretokenizer/class_kernels.inc"
}  // namespace scalar
#endif

std::vector<NamedClassKernels> class_kernels_for_this_machine() {
    std::vector<NamedClassKernels> all;
#define FASTCOMPRESS_ADD(name) \
    all.push_back(             \
        {#name, {name::classify_ascii, name::find_range, name::find_east_asian, name::match_block, name::list_bits}})
#if defined(FASTCOMPRESS_NEON)
    FASTCOMPRESS_ADD(neon);
#else
#if defined(FASTCOMPRESS_X86)
    if (has_avx512()) FASTCOMPRESS_ADD(avx512);
    if (has_avx2()) FASTCOMPRESS_ADD(avx2);
#endif
    FASTCOMPRESS_ADD(scalar);
#endif
#undef FASTCOMPRESS_ADD
    return all;
}

}  // namespace fastcompress::pretokenizer
