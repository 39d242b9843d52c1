// Generated tables about characters: the data of Unicode normalization, the characters that a regex calls \w, and those
// that there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fastcompress::unicode {

// What NFC (Unicode 9.0) makes of a code point.
struct NfcClass {
    uint8_t combining_class;  // canonical; 0: a starter
    bool changes;             // it may compose with what stands before it, or decompose (NFC_Quick_Check is not Yes)
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

struct CodePointRange {  // both ends belong to it
    uint32_t first;
    uint32_t last;
};

// Two stages, as in char_class.h; the values index kNfcClasses, whose entry 0 is {0, false}: a starter that stays.
extern const uint8_t kNfcBlockIndex[];
extern const uint8_t kNfcBlocks[];
extern const NfcClass kNfcClasses[];
extern const std::span<const Decomposition> kDecompositions;  // by code point, without Hangul syllables
extern const uint32_t kDecompositionLetters[];
extern const std::span<const Composition> kCompositions;  // by (first, second), without Hangul syllables
extern const std::span<const CodePointRange> kWordRanges;
extern const std::span<const CodePointRange> kAssignedRanges;  // of a category other than Cn in kUnicodeVersion

// code_point <= kInvalidCodePoint, which is a starter that stays.
inline uint8_t nfc_class_index_of(uint32_t code_point) {
    return kNfcBlocks[size_t{kNfcBlockIndex[code_point >> 7]} << 7 | (code_point & 127)];
}
inline NfcClass nfc_class_of(uint32_t code_point) {
    return kNfcClasses[nfc_class_index_of(code_point)];
}
// A starter that stays, whatever stands around it.
inline bool is_nfc_inert(uint32_t code_point) {
    return code_point < 0x300 || nfc_class_index_of(code_point) == 0;
}

// Whether \w matches the code point (Unicode 16.0: Alphabetic, M, Nd, Pc and Join_Control).
inline bool is_word(uint32_t code_point) {
    const auto after = std::ranges::upper_bound(kWordRanges, code_point, {}, &CodePointRange::first);
    return after != kWordRanges.begin() && code_point <= (after - 1)->last;
}

}  // namespace fastcompress::unicode
