// Reads and writes UTF-8 one code point at a time. Any bytes can be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::unicode {

// The value that a byte outside of every well-formed sequence decodes to. It lies outside Unicode, so it has no class.
inline constexpr uint32_t kInvalidCodePoint = 0x110000;

struct DecodedCodePoint {
    uint32_t value;   // < 0x110000, or kInvalidCodePoint
    uint32_t length;  // bytes: 1 to 4; always 1 for kInvalidCodePoint
};

// Decodes the code point at text[position]. Requires position < size. A byte that does not begin a well-formed sequence
// (Unicode 16, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF, no truncation) decodes to one
// invalid code point of one byte, so every byte string has exactly one reading and nothing is lost.
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

// Writes the UTF-8 of a code point below 0x110000, one to four bytes, and returns the end of what it wrote.
inline uint8_t* write_utf8(uint32_t code_point, uint8_t* out) {
    const auto continuation = [&](int shift) { return static_cast<uint8_t>(0x80 | (code_point >> shift & 0x3f)); };
    if (code_point < 0x80) {
        *out++ = static_cast<uint8_t>(code_point);
    } else if (code_point < 0x800) {
        *out++ = static_cast<uint8_t>(0xc0 | code_point >> 6);
        *out++ = continuation(0);
    } else if (code_point < 0x10000) {
        *out++ = static_cast<uint8_t>(0xe0 | code_point >> 12);
        *out++ = continuation(6);
        *out++ = continuation(0);
    } else {
        *out++ = static_cast<uint8_t>(0xf0 | code_point >> 18);
        *out++ = continuation(12);
        *out++ = continuation(6);
        *out++ = continuation(0);
    }
    return out;
}

}  // namespace fastcompress::unicode
