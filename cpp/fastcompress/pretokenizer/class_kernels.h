// Classifying 64 bytes at once: the vector code behind ClassBitmaps, in the best instruction set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastcompress::pretokenizer {

// Bit i of each mask says something about byte i of 64.
struct ByteMasks {
    // ASCII characters of a class.
    uint64_t upper, lower, number, space, newline, blank, apostrophe;
    uint64_t graphic;  // ! to ~: letters, numbers and what is kPunctuation
    uint64_t beyond;   // not ASCII
    // First bytes of well-formed characters of two and three bytes, of those ranges where the class is plain to see:
    // letters with upper case, with lower case, and without (Lo, Lm).
    uint64_t upper2, lower2, other2, other3;
    // The same without telling the cases apart: letters2 holds upper2, lower2, other2 and more.
    uint64_t letters2;
};

struct ClassKernels {
    // bytes[0, 64) may be read.
    void (*classify_ascii)(const uint8_t* bytes, ByteMasks& masks);
    // Fills what is beyond ASCII; bytes[0, 66) may be read.
    void (*classify_letters)(const uint8_t* bytes, ByteMasks& masks);
    // Writes base + i for each set bit i of `bits` in ascending order, and past them up to 64 places; returns how many.
    size_t (*list_bits)(uint64_t bits, uint32_t base, uint32_t* out);
};

// Chosen once a process.
extern const ClassKernels kClassKernels;

}  // namespace fastcompress::pretokenizer
