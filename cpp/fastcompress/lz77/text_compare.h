// Compares text at two positions, eight bytes at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fastcompress::lz77 {

inline uint64_t load_word(const uint8_t* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
}

// Returns the number of leading bytes in which two words in memory agree, given their exclusive or; 8 if it is zero.
inline uint32_t equal_bytes(uint64_t difference) {
    static_assert(std::endian::native == std::endian::little);
    return static_cast<uint32_t>(std::countr_zero(difference)) / 8;
}

// Returns the length of the common prefix of the bytes at `a` and at `b`, at most `most`. Requires that `most` bytes
// can be read from both, which may overlap.
inline size_t common_prefix(const uint8_t* a, const uint8_t* b, size_t most) {
    size_t length = 0;
    for (; length + 8 <= most; length += 8) {
        const uint64_t difference = load_word(a + length) ^ load_word(b + length);
        if (difference != 0) return length + equal_bytes(difference);
    }
    while (length < most && a[length] == b[length]) ++length;
    return length;
}

}  // namespace fastcompress::lz77
