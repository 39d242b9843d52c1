// Writes UTF-8 from arrays of code points of one, two or four bytes each, as CPython stores the characters of a str.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::unicode {

// Writes the UTF-8 of `count` code points (below 0x110000) and returns its number of bytes: at most two, three or four
// per character of one, two or four bytes. May overwrite up to 16 bytes after them. A surrogate pair becomes the
// character that it encodes, and a lone surrogate becomes U+FFFD. O(count); several bytes per cycle for ASCII.
size_t encode_utf8(const uint8_t* chars, size_t count, uint8_t* out);
size_t encode_utf8(const uint16_t* chars, size_t count, uint8_t* out);
size_t encode_utf8(const uint32_t* chars, size_t count, uint8_t* out);

}  // namespace fastcompress::unicode
