// Strings that keep to words: all or part of one word, number or run of symbols, with at most one space before it, or
// white space (FORMAT.md, "Words"). So a string may be told byte by byte, and every prefix of such a string is one.
#pragma once

#include <cstdint>

#include "fastcompress/common/bytes.h"

namespace fastcompress::words {

// The kinds of bytes that words, numbers, white space and symbols are made of.
enum class Kind : uint8_t { kLetter, kDigit, kWhite, kSymbol };

inline Kind kind_of(uint8_t byte) {
    if (byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return Kind::kLetter;
    if (byte >= '0' && byte <= '9') return Kind::kDigit;
    return byte == ' ' || (byte >= 0x09 && byte <= 0x0d) ? Kind::kWhite : Kind::kSymbol;
}

// Whether a string that keeps to words, ends with `last` and is one byte long or longer may be extended by a byte.
inline bool may_follow(uint8_t last, bool is_single, uint8_t byte) {
    return (is_single && last == ' ') || kind_of(last) == kind_of(byte);
}

inline bool keeps_to_words(Bytes text) {
    for (size_t i = 1; i < text.size(); ++i) {
        if (!may_follow(text[i - 1], i == 1, text[i])) return false;
    }
    return true;
}

}  // namespace fastcompress::words
