// Classifying 64 bytes at once: the vector code behind ClassBitmaps, in the best instruction set of the machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fastcompress::pretokenizer {

// Bitmaps of the ASCII characters of a class, bit i of word w for byte 64 w + i; `beyond` are the bytes that are not ASCII.
struct AsciiRows {
    uint64_t *letter, *number, *space, *symbol, *newline, *blank, *apostrophe, *beyond;
    uint64_t *upper, *lower;  // null if they are not wanted
};

// A set of last bytes, 0x80 to 0xbf, of characters that share the others: byte i % 16, bit i / 16 for the byte 0x80 + i.
using LastByteSet = std::array<uint8_t, 16>;
inline constexpr size_t kMaxBlockSets = 8;

// Up to eight such sets, in the two forms that kernels look them up in.
struct LastByteSets {
    uint32_t size = 0;
    std::array<LastByteSet, kMaxBlockSets> sets = {};
    std::array<uint8_t, 64> sets_of = {};  // bit k of byte i: the byte 0x80 + i is in set k
};

// First bytes of the characters of a block, and of those whose last byte is in each of the sets there are.
struct BlockMasks {
    uint64_t all;
    uint64_t in_set[kMaxBlockSets];
};

struct ClassKernels {
    // Fills num_words words of each row from 64 num_words bytes.
    void (*classify_ascii)(const uint8_t* bytes, size_t num_words, const AsciiRows& rows);
    // Those of 64 bytes that are `first` to `last`.
    uint64_t (*find_range)(const uint8_t* bytes, uint8_t first, uint8_t last);
    // First bytes of Han, Hangul and kana letters, of which text holds too many to go block by block: those of the ranges
    // where that is plain to see. bytes[0, 66) may be read.
    uint64_t (*find_east_asian)(const uint8_t* bytes);
    // Characters of `length` 2 or 3 bytes, which begin with one or two of `firsts`. bytes[0, 66) may be read.
    void (*match_block)(const uint8_t* bytes, const uint8_t* firsts, uint32_t length, const LastByteSets& sets,
                        BlockMasks& masks);
    // Writes the numbers of the set bits in [begin, end) in ascending order, and up to 64 places more; returns how many.
    size_t (*list_bits)(const uint64_t* words, size_t begin, size_t end, uint32_t* out);
};

// All that this machine can run, the best first.
struct NamedClassKernels {
    const char* name;
    ClassKernels kernels;
};
std::vector<NamedClassKernels> class_kernels_for_this_machine();
// The best of them, chosen at the first call, so that static objects of other files may use them.
inline const ClassKernels& class_kernels() {
    static const ClassKernels best = class_kernels_for_this_machine().front().kernels;
    return best;
}

}  // namespace fastcompress::pretokenizer
