// The SIMD kernels behind ClassBitmaps, which classify 64 bytes at once, for the best instruction set of the machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fastcompress::pretokenizer {

// One bitmap per class of ASCII characters: bit i of word w is for byte 64 w + i. `beyond` has the bytes that are not
// ASCII.
struct AsciiRows {
    uint64_t *letter, *number, *space, *symbol, *newline, *blank, *apostrophe, *beyond;
    uint64_t *upper, *lower;  // null if the pattern does not need them
};

// A set of last bytes, 0x80 to 0xbf, of characters that share their other bytes. The byte 0x80 + i is bit i / 16 of the
// element i % 16.
using LastByteSet = std::array<uint8_t, 16>;
inline constexpr size_t kMaxBlockSets = 8;

// Up to eight such sets, in the two forms in which kernels look them up.
struct LastByteSets {
    uint32_t size = 0;
    std::array<LastByteSet, kMaxBlockSets> sets = {};
    std::array<uint8_t, 64> sets_of = {};  // bit k of byte i: the byte 0x80 + i is in set k
};

// The first bytes of all characters of a block, and for each set of those whose last byte is in the set.
struct BlockMasks {
    uint64_t all;
    uint64_t in_set[kMaxBlockSets];
};

struct ClassKernels {
    // Fills num_words words of each row from 64 num_words bytes.
    void (*classify_ascii)(const uint8_t* bytes, size_t num_words, const AsciiRows& rows);
    // Returns which of 64 bytes are in [first, last].
    uint64_t (*find_range)(const uint8_t* bytes, uint8_t first, uint8_t last);
    // Returns the first bytes of Han, Hangul and kana letters in ranges of letters only. A text has too many different
    // ones to go block by block. Reads bytes[0, 66).
    uint64_t (*find_east_asian)(const uint8_t* bytes);
    // Finds the characters of `length` bytes, 2 or 3, that begin with the first length - 1 of `firsts`. Reads bytes[0,
    // 66).
    void (*match_block)(const uint8_t* bytes, const uint8_t* firsts, uint32_t length, const LastByteSets& sets,
                        BlockMasks& masks);
    // Writes the positions of the set bits in [begin, end) in ascending order, and returns their number. May overwrite
    // up to 64 elements of `out` after them.
    size_t (*list_bits)(const uint64_t* words, size_t begin, size_t end, uint32_t* out);
};

struct NamedClassKernels {
    const char* name;
    ClassKernels kernels;
};
// Returns all kernels that this machine can run, the best first.
std::vector<NamedClassKernels> class_kernels_for_this_machine();
// Returns the best of them. Chosen at the first call, so that static objects of other files may use them.
inline const ClassKernels& class_kernels() {
    static const ClassKernels best = class_kernels_for_this_machine().front().kernels;
    return best;
}

}  // namespace fastcompress::pretokenizer
