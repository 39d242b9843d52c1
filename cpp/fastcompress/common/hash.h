// Hashing for in-memory tables. Deterministic on every platform, but never part of a format or an output
// order.
#pragma once

#include <cstdint>
#include <cstring>

#include "fastcompress/common/bytes.h"

namespace fastcompress {

// A bijective 64-bit mixer (the finalizer of SplitMix64; Steele, Lea and Flood, 2014).
inline uint64_t mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// O(n) hash of a byte string, eight bytes a step. Words are read in the machine's own byte order: the value
// stays in memory.
inline uint64_t hash_bytes(Bytes bytes) {
    const uint8_t* data = bytes.data();
    size_t size = bytes.size();
    uint64_t hash = 0x9e3779b97f4a7c15u ^ size;
    while (size >= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        hash = mix64(hash ^ word);
        data += 8;
        size -= 8;
    }
    if (size > 0) {
        uint64_t word = 0;
        std::memcpy(&word, data, size);
        hash = mix64(hash ^ word);
    }
    return hash;
}

}  // namespace fastcompress
