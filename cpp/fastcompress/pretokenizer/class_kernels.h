// Classifying 64 bytes at once: the vector code behind ClassBitmaps, in the best instruction set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::pretokenizer {

// Bitmaps of the ASCII characters of a class, bit i of word w for byte 64 w + i; `beyond` are the bytes that are not ASCII.
struct AsciiRows {
    uint64_t *letter, *number, *space, *symbol, *newline, *blank, *apostrophe, *beyond;
    uint64_t *upper, *lower;  // null if they are not wanted
};

// First bytes of well-formed characters of two and three bytes, of those ranges where the class is plain to see: letters
// with upper case, with lower case, and without (Lo, Lm). Bit i says something about byte i of 64.
struct LetterMasks {
    uint64_t upper2, lower2, other2, other3;
    // Without telling the cases apart: letters2 holds upper2, lower2, other2 and more.
    uint64_t letters2;
};

struct ClassKernels {
    // Fills num_words words of each row from 64 num_words bytes.
    void (*classify_ascii)(const uint8_t* bytes, size_t num_words, const AsciiRows& rows);
    // Of 64 bytes the characters from ! to ~: letters, numbers and what is kPunctuation.
    uint64_t (*find_graphic)(const uint8_t* bytes);
    // bytes[0, 66) may be read.
    void (*classify_letters)(const uint8_t* bytes, LetterMasks& masks);
    // Writes the numbers of the set bits in [begin, end) in ascending order, and up to 64 places more; returns how many.
    size_t (*list_bits)(const uint64_t* words, size_t begin, size_t end, uint32_t* out);
};

// Chosen once a process.
extern const ClassKernels kClassKernels;

}  // namespace fastcompress::pretokenizer
