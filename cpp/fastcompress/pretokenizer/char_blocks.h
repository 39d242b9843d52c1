// Blocks of 64 code points whose UTF-8 differs in the last byte only, as sets of last bytes. With these, SIMD kernels
// classify all characters of a block in 64 bytes of text at once (class_kernels.h).
//
// Apart from spaces, nearly all text in a script without a kernel of its own comes from one to three such blocks.
#pragma once

#include <array>
#include <cstdint>

#include "fastcompress/pretokenizer/class_bitmaps.h"
#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {

struct CharBlock {
    // One set per class that has characters in the block; set k is for classes[k].
    LastByteSets sets;
    std::array<RunClass, kMaxBlockSets> classes = {};
};

// Returns the block of code points 64 * number to 64 * number + 63, below U+10000. The first call for a block computes
// it, which takes a few microseconds. Thread-safe.
const CharBlock& char_block(RunFamily family, uint32_t number);

}  // namespace fastcompress::pretokenizer
