// Reading UTF-8 one code point at a time, over any bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::unicode {

// What a byte that belongs to no well-formed sequence decodes to: outside Unicode, so no table gives it a class.
inline constexpr uint32_t kInvalidCodePoint = 0x110000;

struct DecodedCodePoint {
    uint32_t value;   // < 0x110000, or kInvalidCodePoint
    uint32_t length;  // bytes: 1 to 4; always 1 for kInvalidCodePoint
};

// Decodes the code point at text[position], position < size. A byte that does not begin a well-formed sequence
// (Unicode 16, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF, no truncation) is one invalid code
// point of one byte, so every byte string has exactly one reading and nothing is lost.
inline DecodedCodePoint decode_utf8(const uint8_t* text, size_t position, size_t size) {
    const uint8_t b0 = text[position];
    if (b0 < 0x80) return {b0, 1};
    const size_t left = size - position;
    const auto continuation = [&](size_t i) { return (text[position + i] & 0xc0u) == 0x80u; };
    const auto payload = [&](size_t i) { return uint32_t{text[position + i]} & 0x3fu; };
    if (b0 >= 0xc2 && b0 <= 0xdf && left >= 2 && continuation(1)) {
        return {(b0 & 0x1fu) << 6 | payload(1), 2};
    }
    if (b0 >= 0xe0 && b0 <= 0xef && left >= 3 && continuation(1) && continuation(2)) {
        const uint32_t value = (b0 & 0x0fu) << 12 | payload(1) << 6 | payload(2);
        if (value >= 0x800 && (value < 0xd800 || value > 0xdfff)) return {value, 3};
    }
    if (b0 >= 0xf0 && b0 <= 0xf4 && left >= 4 && continuation(1) && continuation(2) && continuation(3)) {
        const uint32_t value = (b0 & 0x07u) << 18 | payload(1) << 12 | payload(2) << 6 | payload(3);
        if (value >= 0x10000 && value <= 0x10ffff) return {value, 4};
    }
    return {kInvalidCodePoint, 1};
}

}  // namespace fastcompress::unicode
