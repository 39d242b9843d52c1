// With SIMD, several characters at a time: the UTF-8 of each is computed in a lane wide enough for the longest, and a
// shuffle, one per combination of lengths, moves the bytes together.
//   U+0041 U+00E9   lanes 41 00 | C3 A9   lengths 1, 2   shuffle 0 2 3   41 C3 A9
#include "fastcompress/unicode/utf8_encode.h"

#include <array>
#include <bit>

#include "fastcompress/common/targets.h"
#include "fastcompress/unicode/utf8.h"

#if defined(FASTCOMPRESS_AVX2)
#include "fastcompress/common/x86_intrinsics.h"
#endif

namespace fastcompress::unicode {
namespace {

bool is_surrogate(uint32_t code_point) {
    return code_point >= 0xd800 && code_point <= 0xdfff;
}

// Writes the characters [i, end), or one more if a surrogate pair crosses `end`. Returns the position after them.
template <class Char>
size_t put_some(const Char* chars, size_t i, size_t end, size_t count, uint8_t*& out) {
    while (i < end) {
        uint32_t code_point = chars[i++];
        if (is_surrogate(code_point)) {
            const uint32_t next = i < count ? chars[i] : 0;
            if (code_point < 0xdc00 && next >= 0xdc00 && next <= 0xdfff) {
                code_point = 0x10000 + ((code_point - 0xd800) << 10) + (next - 0xdc00);
                ++i;
            } else {
                code_point = 0xfffd;
            }
        }
        out = write_utf8(code_point, out);
    }
    return i;
}

#if defined(FASTCOMPRESS_AVX2)

using Shuffles = std::array<std::array<uint8_t, 16>, 256>;

// Shuffles for eight lanes of two bytes. Bit i of the index is set if lane i has one byte instead of two.
constexpr Shuffles kShufflesOf2 = [] {
    Shuffles shuffles = {};
    for (size_t index = 0; index < 256; ++index) {
        size_t size = 0;
        for (uint8_t lane = 0; lane < 8; ++lane) {
            shuffles[index][size++] = static_cast<uint8_t>(2 * lane);
            if (!(index >> lane & 1)) shuffles[index][size++] = static_cast<uint8_t>(2 * lane + 1);
        }
    }
    return shuffles;
}();

// Shuffles for four lanes of four bytes. Bit i of the index is set if lane i has two or three bytes, bit i + 4 if
// three.
constexpr Shuffles kShufflesOf3 = [] {
    Shuffles shuffles = {};
    for (size_t index = 0; index < 256; ++index) {
        size_t size = 0;
        for (uint8_t lane = 0; lane < 4; ++lane) {
            const size_t length = 1 + (index >> lane & 1) + (index >> (lane + 4) & 1);
            for (uint8_t i = 0; i < length; ++i) shuffles[index][size++] = static_cast<uint8_t>(4 * lane + i);
        }
    }
    return shuffles;
}();

FASTCOMPRESS_AVX2 __m128i load_128(const void* data) {
    return _mm_loadu_si128(static_cast<const __m128i*>(data));
}

FASTCOMPRESS_AVX2 void store_shuffled(__m128i lanes, const std::array<uint8_t, 16>& shuffle, uint8_t* out) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(lanes, load_128(shuffle.data())));
}

// Writes eight code points below 0x800, in lanes of 16 bits.
FASTCOMPRESS_AVX2 uint8_t* put_8(__m128i chars, uint8_t* out) {
    const __m128i is_ascii = _mm_cmpgt_epi16(_mm_set1_epi16(0x80), chars);
    const __m128i first = _mm_or_si128(_mm_srli_epi16(chars, 6), _mm_set1_epi16(static_cast<int16_t>(0x80c0)));
    const __m128i second = _mm_slli_epi16(_mm_and_si128(chars, _mm_set1_epi16(0x3f)), 8);
    const __m128i lanes = _mm_blendv_epi8(_mm_or_si128(first, second), chars, is_ascii);
    const auto index = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(is_ascii, _mm_setzero_si128())));
    store_shuffled(lanes, kShufflesOf2[index], out);
    return out + 16 - std::popcount(index);
}

// Writes eight code points below 0x10000 that are not surrogates, in lanes of 32 bits.
FASTCOMPRESS_AVX2 uint8_t* put_8_wide(__m256i chars, uint8_t* out) {
    const __m256i low = _mm256_and_si256(chars, _mm256_set1_epi32(0x3f));
    const __m256i middle = _mm256_and_si256(_mm256_slli_epi32(chars, 2), _mm256_set1_epi32(0x3f00));
    const __m256i two = _mm256_or_si256(_mm256_or_si256(_mm256_srli_epi32(chars, 6), _mm256_slli_epi32(low, 8)),
                                        _mm256_set1_epi32(0x80c0));
    const __m256i three = _mm256_or_si256(
        _mm256_or_si256(_mm256_srli_epi32(chars, 12), _mm256_or_si256(middle, _mm256_slli_epi32(low, 16))),
        _mm256_set1_epi32(0x8080e0));
    const __m256i over_one = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7f));
    const __m256i over_two = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7ff));
    const __m256i lanes = _mm256_blendv_epi8(_mm256_blendv_epi8(chars, two, over_one), three, over_two);
    const auto longer_than_1 = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(over_one)));
    const auto longer_than_2 = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(over_two)));
    const uint32_t first = (longer_than_1 & 15) | (longer_than_2 & 15) << 4;
    const uint32_t second = longer_than_1 >> 4 | (longer_than_2 & 0xf0);
    store_shuffled(_mm256_castsi256_si128(lanes), kShufflesOf3[first], out);
    out += 4 + std::popcount(first);
    store_shuffled(_mm256_extracti128_si256(lanes, 1), kShufflesOf3[second], out);
    return out + 4 + std::popcount(second);
}

FASTCOMPRESS_AVX2 bool any_bit(__m128i v, __m128i bits) {
    return !_mm_testz_si128(v, bits);
}

// Each writes up to 16 characters and returns their number; 0 if the next characters include some that it does not
// handle.
FASTCOMPRESS_AVX2 size_t put_vector(const uint8_t* chars, uint8_t*& out) {
    const __m128i v = load_128(chars);
    if (_mm_movemask_epi8(v) == 0) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), v);
        out += 16;
        return 16;
    }
    out = put_8(_mm_cvtepu8_epi16(v), out);
    return 8;
}

FASTCOMPRESS_AVX2 size_t put_vector(const uint16_t* chars, uint8_t*& out) {
    const __m128i v = load_128(chars);
    const __m128i next = load_128(chars + 8);
    if (!any_bit(_mm_or_si128(v, next), _mm_set1_epi16(static_cast<int16_t>(0xff80)))) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(v, next));
        out += 16;
        return 16;
    }
    if (!any_bit(v, _mm_set1_epi16(static_cast<int16_t>(0xf800)))) {
        out = put_8(v, out);
        return 8;
    }
    const __m128i upper_bits = _mm_and_si128(v, _mm_set1_epi16(static_cast<int16_t>(0xf800)));
    if (_mm_movemask_epi8(_mm_cmpeq_epi16(upper_bits, _mm_set1_epi16(static_cast<int16_t>(0xd800)))) != 0) return 0;
    out = put_8_wide(_mm256_cvtepu16_epi32(v), out);
    return 8;
}

FASTCOMPRESS_AVX2 size_t put_vector(const uint32_t* chars, uint8_t*& out) {
    const __m128i v = load_128(chars);
    const __m128i v1 = load_128(chars + 4);
    const __m128i v2 = load_128(chars + 8);
    const __m128i v3 = load_128(chars + 12);
    if (!any_bit(_mm_or_si128(_mm_or_si128(v, v1), _mm_or_si128(v2, v3)), _mm_set1_epi32(~0x7f))) {
        const __m128i packed = _mm_packus_epi16(_mm_packus_epi32(v, v1), _mm_packus_epi32(v2, v3));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), packed);
        out += 16;
        return 16;
    }
    if (any_bit(_mm_or_si128(v, v1), _mm_set1_epi32(~0xffff))) return 0;
    const __m256i both = _mm256_set_m128i(v1, v);
    const __m256i upper_bits = _mm256_and_si256(both, _mm256_set1_epi32(0xf800));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(upper_bits, _mm256_set1_epi32(0xd800))) != 0) return 0;
    out = put_8_wide(both, out);
    return 8;
}

// Writes the characters from `i` on.
template <class Char>
FASTCOMPRESS_AVX2 size_t encode_with_avx2(const Char* chars, size_t count, uint8_t* out, size_t i = 0) {
    uint8_t* const begin = out;
    while (i + 16 <= count) {
        const size_t done = put_vector(chars + i, out);
        i = done > 0 ? i + done : put_some(chars, i, i + 4, count, out);
    }
    put_some(chars, i, count, count, out);
    return static_cast<size_t>(out - begin);
}

// With AVX-512, the lanes have 64 bytes in all, and an instruction removes the unused ones. `out` has room for the
// stores: 64 bytes of characters take at least as much there (utf8_encode.h).

// Writes 32 code points below 0x800, in lanes of 16 bits.
FASTCOMPRESS_AVX512 uint8_t* put_32(__m512i chars, uint8_t* out) {
    const __mmask32 is_two = _mm512_cmpgt_epu16_mask(chars, _mm512_set1_epi16(0x7f));
    const __m512i low = _mm512_and_si512(chars, _mm512_set1_epi16(0x3f));
    const __m512i two = _mm512_or_si512(_mm512_or_si512(_mm512_srli_epi16(chars, 6), _mm512_slli_epi16(low, 8)),
                                        _mm512_set1_epi16(static_cast<int16_t>(0x80c0)));
    const __m512i lanes = _mm512_mask_mov_epi16(chars, is_two, two);
    const uint64_t wanted = 0x5555555555555555u | _pdep_u64(is_two, 0xaaaaaaaaaaaaaaaau);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(wanted, lanes));
    return out + 32 + std::popcount(is_two);
}

// Writes 16 code points below 0x10000 that are not surrogates, in lanes of 32 bits.
FASTCOMPRESS_AVX512 uint8_t* put_16_wide(__m512i chars, uint8_t* out) {
    const __mmask16 over_one = _mm512_cmpgt_epu32_mask(chars, _mm512_set1_epi32(0x7f));
    const __mmask16 over_two = _mm512_cmpgt_epu32_mask(chars, _mm512_set1_epi32(0x7ff));
    const __m512i low = _mm512_and_si512(chars, _mm512_set1_epi32(0x3f));
    const __m512i middle = _mm512_and_si512(_mm512_slli_epi32(chars, 2), _mm512_set1_epi32(0x3f00));
    const __m512i two = _mm512_or_si512(_mm512_or_si512(_mm512_srli_epi32(chars, 6), _mm512_slli_epi32(low, 8)),
                                        _mm512_set1_epi32(0x80c0));
    const __m512i three = _mm512_or_si512(
        _mm512_or_si512(_mm512_srli_epi32(chars, 12), _mm512_or_si512(middle, _mm512_slli_epi32(low, 16))),
        _mm512_set1_epi32(0x8080e0));
    const __m512i lanes = _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(chars, over_one, two), over_two, three);
    const uint64_t wanted =
        0x1111111111111111u | _pdep_u64(over_one, 0x2222222222222222u) | _pdep_u64(over_two, 0x4444444444444444u);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(wanted, lanes));
    return out + 16 + std::popcount(over_one) + std::popcount(over_two);
}

// Each reads 64 bytes of characters and returns the number written, as put_vector() does.
FASTCOMPRESS_AVX512 size_t put_long_vector(const uint8_t* chars, uint8_t*& out) {
    const __m512i v = _mm512_loadu_si512(chars);
    if (_mm512_movepi8_mask(v) == 0) {
        _mm512_storeu_si512(out, v);
        out += 64;
        return 64;
    }
    out = put_32(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(v)), out);
    return 32;
}

FASTCOMPRESS_AVX512 size_t put_long_vector(const uint16_t* chars, uint8_t*& out) {
    const __m512i v = _mm512_loadu_si512(chars);
    if (_mm512_cmpgt_epu16_mask(v, _mm512_set1_epi16(0x7f)) == 0) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi16_epi8(v));
        out += 32;
    } else if (_mm512_cmpgt_epu16_mask(v, _mm512_set1_epi16(0x7ff)) == 0) {
        out = put_32(v, out);
    } else {
        const __m512i upper_bits = _mm512_and_si512(v, _mm512_set1_epi16(static_cast<int16_t>(0xf800)));
        if (_mm512_cmpeq_epi16_mask(upper_bits, _mm512_set1_epi16(static_cast<int16_t>(0xd800))) != 0) return 0;
        out = put_16_wide(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)), out);
        out = put_16_wide(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)), out);
    }
    return 32;
}

FASTCOMPRESS_AVX512 size_t put_long_vector(const uint32_t* chars, uint8_t*& out) {
    const __m512i v = _mm512_loadu_si512(chars);
    if (_mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(0x7f)) == 0) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(v));
        out += 16;
        return 16;
    }
    const __m512i upper_bits = _mm512_and_si512(v, _mm512_set1_epi32(0xf800));
    if (_mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(0xffff)) != 0) return 0;
    if (_mm512_cmpeq_epi32_mask(upper_bits, _mm512_set1_epi32(0xd800)) != 0) return 0;
    out = put_16_wide(v, out);
    return 16;
}

template <class Char>
FASTCOMPRESS_AVX512 size_t encode_with_avx512(const Char* chars, size_t count, uint8_t* out) {
    uint8_t* const begin = out;
    size_t i = 0;
    while (i + 64 / sizeof(Char) <= count) {
        const size_t done = put_long_vector(chars + i, out);
        i = done > 0 ? i + done : put_some(chars, i, i + 4, count, out);
    }
    const auto size = static_cast<size_t>(out - begin);
    return size + encode_with_avx2(chars, count, out, i);
}

#endif

template <class Char>
size_t encode(const Char* chars, size_t count, uint8_t* out) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) return encode_with_avx512(chars, count, out);
    if (has_avx2()) return encode_with_avx2(chars, count, out);
#endif
    uint8_t* const begin = out;
    put_some(chars, 0, count, count, out);
    return static_cast<size_t>(out - begin);
}

}  // namespace

size_t encode_utf8(const uint8_t* chars, size_t count, uint8_t* out) {
    return encode(chars, count, out);
}
size_t encode_utf8(const uint16_t* chars, size_t count, uint8_t* out) {
    return encode(chars, count, out);
}
size_t encode_utf8(const uint32_t* chars, size_t count, uint8_t* out) {
    return encode(chars, count, out);
}

}  // namespace fastcompress::unicode
