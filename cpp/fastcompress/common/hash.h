// Hashing for tables in memory. No file format and no order of results depends on it, except that mix64 itself never
// changes: BPE-dropout makes its random numbers with it.
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

// Mixes two words into one: the exclusive or of the halves of their 128-bit product.
inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ using Product = unsigned __int128;
    const Product product = static_cast<Product>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
    return mix64(a ^ mix64(b));
#endif
}

// The seed of hashes, drawn once per process, so that texts or files whose hashes collide cannot be prepared. It is
// drawn at the first call: a global might not be set yet when a static object of another file hashes. Loops over many
// keys should copy it.
uint64_t draw_hash_seed();
inline uint64_t hash_seed() {
    static const uint64_t seed = draw_hash_seed();
    return seed;
}

// Hashes a byte string, eight bytes per step; the result differs between processes. O(n).
inline uint64_t hash_bytes(Bytes bytes) {
    const uint8_t* data = bytes.data();
    size_t size = bytes.size();
    uint64_t hash = hash_seed() ^ size;
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
