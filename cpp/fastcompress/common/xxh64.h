// XXH64, a fast 64-bit checksum against damage, not against forgery (Yann Collet's "xxHash fast digest algorithm"
// specification, version 0.1.1). Little-endian on every machine.
#pragma once

#include <bit>
#include <cstdint>

#include "fastcompress/common/bytes.h"

namespace fastcompress {

namespace xxh64_detail {

inline constexpr uint64_t kPrime1 = 0x9e3779b185ebca87u;
inline constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fu;
inline constexpr uint64_t kPrime3 = 0x165667b19e3779f9u;
inline constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63u;
inline constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5u;

// Compilers turn this loop into one load.
inline uint64_t load(const uint8_t* bytes, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= uint64_t{bytes[i]} << (8 * i);
    return value;
}
inline uint64_t round(uint64_t lane, uint64_t input) {
    return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}
inline uint64_t merge(uint64_t hash, uint64_t lane) {
    return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace xxh64_detail

// Returns the XXH64 of bytes. O(n); allocates nothing.
inline uint64_t xxh64(Bytes bytes, uint64_t seed) {
    using namespace xxh64_detail;
    const uint8_t* next = bytes.data();
    size_t left = bytes.size();
    uint64_t hash = seed + kPrime5;
    if (left >= 32) {
        uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
        for (; left >= 32; left -= 32, next += 32) {
            for (int i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load(next + 8 * i, 8));
        }
        hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
        for (const uint64_t lane : lanes) hash = merge(hash, lane);
    }
    hash += bytes.size();
    for (; left >= 8; left -= 8, next += 8) {
        hash = std::rotl(hash ^ round(0, load(next, 8)), 27) * kPrime1 + kPrime4;
    }
    if (left >= 4) {
        hash = std::rotl(hash ^ load(next, 4) * kPrime1, 23) * kPrime2 + kPrime3;
        left -= 4;
        next += 4;
    }
    for (; left > 0; --left, ++next) hash = std::rotl(hash ^ *next * kPrime5, 11) * kPrime1;
    hash = (hash ^ hash >> 33) * kPrime2;
    hash = (hash ^ hash >> 29) * kPrime3;
    return hash ^ hash >> 32;
}

}  // namespace fastcompress
