// Writing UTF-8 from arrays of code points, as CPython keeps the characters of a str: in one, two or four bytes each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::unicode {

// Writes the UTF-8 of `count` code points (below 0x110000) and returns how many bytes that is: at most two, three or
// four for a character of one, two or four bytes. Up to 16 more are written.
// A surrogate pair becomes the character it stands for, and a surrogate alone U+FFFD. O(count); several bytes a cycle
// where it is ASCII.
size_t encode_utf8(const uint8_t* chars, size_t count, uint8_t* out);
size_t encode_utf8(const uint16_t* chars, size_t count, uint8_t* out);
size_t encode_utf8(const uint32_t* chars, size_t count, uint8_t* out);

}  // namespace fastcompress::unicode
