#include "fastcompress/common/sha256.h"

#include <algorithm>
#include <bit>

// The SHA-256 instructions of x86 processors, if the compiler can emit them and the processor has them.
#if defined(__x86_64__) && defined(__GNUC__)
#define FASTCOMPRESS_SHA_NI 1
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace fastcompress {
namespace {

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void compress_block(State& state, const uint8_t* block) {
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i) {
        w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
               uint32_t{block[4 * i + 3]};
    }
    for (size_t i = 16; i < 64; ++i) {
        const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
        const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
        const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const State round = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += round[i];
}

void compress_portably(State& state, const uint8_t* blocks, size_t num_blocks) {
    for (size_t i = 0; i < num_blocks; ++i) compress_block(state, blocks + 64 * i);
}

#if FASTCOMPRESS_SHA_NI
// Six times as fast as the portable code. The state is held in two registers, in the order that the instructions
// require: ABEF and CDGH (Gulley et al., Intel SHA Extensions, 2013).
__attribute__((target("sha,sse4.1"))) void compress_with_sha_ni(State& state, const uint8_t* blocks,
                                                                size_t num_blocks) {
    const auto load = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i cdab = _mm_shuffle_epi32(load(&state[0]), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(load(&state[4]), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, hgfe, 8);
    __m128i cdgh = _mm_blend_epi16(hgfe, cdab, 0xf0);
    for (; num_blocks > 0; --num_blocks, blocks += 64) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        __m128i w[4];  // the last 16 words of the message schedule
        for (size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(blocks + 16 * i), big_endian);
#pragma GCC unroll 16
        for (size_t i = 0; i < 16; ++i) {  // four rounds
            __m128i& words = w[i % 4];
            if (i >= 4) {
                const __m128i& last = w[(i + 3) % 4];
                words = _mm_sha256msg1_epu32(words, w[(i + 1) % 4]);
                words = _mm_add_epi32(words, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
                words = _mm_sha256msg2_epu32(words, last);
            }
            const __m128i sum = _mm_add_epi32(words, load(&kRoundConstants[4 * i]));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

// Uses CPUID, because __builtin_cpu_supports of gcc 12 and clang 14 has no name for SHA.
bool has_sha_ni() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}
#endif

auto fastest_compress() {
#if FASTCOMPRESS_SHA_NI
    if (has_sha_ni()) return &compress_with_sha_ni;
#endif
    return &compress_portably;
}

}  // namespace

Sha256::Sha256(bool portable) {
    static const auto fastest = fastest_compress();
    compress_ = portable ? &compress_portably : fastest;
}

void Sha256::update(Bytes bytes) {
    const size_t waiting = num_bytes_ % block_.size();
    num_bytes_ += bytes.size();
    if (waiting > 0) {
        const size_t taken = std::min(bytes.size(), block_.size() - waiting);
        std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(waiting));
        if (waiting + taken < block_.size()) return;
        compress_(state_, block_.data(), 1);
        bytes = bytes.subspan(taken);
    }
    const size_t whole = bytes.size() / block_.size() * block_.size();
    compress_(state_, bytes.data(), whole / block_.size());
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end(), block_.begin());
}

Sha256Digest Sha256::finish() {
    // The rest, a one bit, zeros, and the message's length in bits, in one block or two.
    const uint64_t num_bits = num_bytes_ * 8;
    const size_t waiting = num_bytes_ % block_.size();
    std::array<uint8_t, 72> tail{0x80};
    const size_t tail_size = (waiting < 56 ? 64 : 128) - waiting;
    for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<uint8_t>(num_bits >> (8 * i));
    update(Bytes(tail).first(tail_size));

    Sha256Digest digest;
    for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

}  // namespace fastcompress
