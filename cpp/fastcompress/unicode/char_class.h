// The class of a code point for the patterns of pretokenizers: a set of bits, from generated Unicode tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fastcompress/unicode/utf8.h"

namespace fastcompress::unicode {

using CharClass = uint8_t;
inline constexpr CharClass kUpper = 1 << 0;        // Lu, Lt
inline constexpr CharClass kLower = 1 << 1;        // Ll
inline constexpr CharClass kOtherLetter = 1 << 2;  // Lm, Lo
inline constexpr CharClass kMark = 1 << 3;         // M
inline constexpr CharClass kNumber = 1 << 4;       // N
inline constexpr CharClass kSpace = 1 << 5;        // White_Space, \s
inline constexpr CharClass kNewline = 1 << 6;      // CR and LF, which are kSpace too
inline constexpr CharClass kPunctuation = 1 << 7;  // P, S
inline constexpr CharClass kLetter = kUpper | kLower | kOtherLetter;
// The two overlapping sets of the characters in words of o200k: [Lu Lt Lm Lo M] and [Ll Lm Lo M].
inline constexpr CharClass kUpperSet = kUpper | kOtherLetter | kMark;
inline constexpr CharClass kLowerSet = kLower | kOtherLetter | kMark;

extern const char kUnicodeVersion[];
// Tables of two stages: the class of c is kClassBlocks[kClassBlockIndex[c / 128] * 128 + c % 128]. Block 0 is ASCII.
extern const uint8_t kClassBlockIndex[];
extern const uint8_t kClassBlocks[];

// Returns the class of a code point. Requires code_point <= kInvalidCodePoint, whose class is 0.
inline CharClass class_of(uint32_t code_point) {
    return kClassBlocks[size_t{kClassBlockIndex[code_point >> 7]} << 7 | (code_point & 127)];
}

// [一-龥぀-ゟ゠-ヿ], the Han and kana characters that DeepSeek splits off. They are two ranges of code points, not a Unicode
// class: they contain letters, marks (U+3099), punctuation (U+30FB) and unassigned code points (U+3097), but no numbers
// and no spaces.
inline bool is_han_or_kana(uint32_t code_point) {
    return (code_point >= 0x4e00 && code_point <= 0x9fa5) || (code_point >= 0x3040 && code_point <= 0x30ff);
}

}  // namespace fastcompress::unicode
