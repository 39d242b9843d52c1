// Generated tables of characters: the data of Unicode normalization, the characters that \w of a regex matches, and the
// assigned code points.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fastcompress::unicode {

// The properties of a code point in NFC (Unicode 9.0).
struct NfcClass {
    uint8_t combining_class;  // canonical; 0: a starter
    bool changes;             // it may compose with the character before it, or decompose (NFC_Quick_Check is not Yes)
};

struct Decomposition {  // full and canonical: kDecompositionLetters[begin, begin + length)
    uint32_t code_point;
    uint32_t begin;
    uint32_t length;
};

struct Composition {
    uint32_t first;
    uint32_t second;
    uint32_t composed;
};

struct CodePointRange {  // both ends are included
    uint32_t first;
    uint32_t last;
};

// Tables of two stages, as in char_class.h. Their values index kNfcClasses. Its entry 0 is {0, false}: an inert
// starter, which NFC never changes.
extern const uint8_t kNfcBlockIndex[];
extern const uint8_t kNfcBlocks[];
extern const NfcClass kNfcClasses[];
extern const std::span<const Decomposition> kDecompositions;  // by code point, without Hangul syllables
extern const uint32_t kDecompositionLetters[];
extern const std::span<const Composition> kCompositions;  // by (first, second), without Hangul syllables
extern const std::span<const CodePointRange> kWordRanges;
extern const std::span<const CodePointRange> kAssignedRanges;  // all categories but Cn, in kUnicodeVersion

// Returns the index in kNfcClasses. Requires code_point <= kInvalidCodePoint, which is an inert starter.
inline uint8_t nfc_class_index_of(uint32_t code_point) {
    return kNfcBlocks[size_t{kNfcBlockIndex[code_point >> 7]} << 7 | (code_point & 127)];
}
inline NfcClass nfc_class_of(uint32_t code_point) {
    return kNfcClasses[nfc_class_index_of(code_point)];
}
// Whether the code point is an inert starter: one that NFC never changes, whatever stands around it.
inline bool is_nfc_inert(uint32_t code_point) {
    return code_point < 0x300 || nfc_class_index_of(code_point) == 0;
}

// Whether \w matches the code point (Unicode 16.0: Alphabetic, M, Nd, Pc and Join_Control).
inline bool is_word(uint32_t code_point) {
    const auto after = std::ranges::upper_bound(kWordRanges, code_point, {}, &CodePointRange::first);
    return after != kWordRanges.begin() && code_point <= (after - 1)->last;
}

}  // namespace fastcompress::unicode
