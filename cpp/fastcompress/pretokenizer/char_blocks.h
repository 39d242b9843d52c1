// Blocks of 64 code points whose UTF-8 shares all bytes but the last, as sets of last bytes: what vector code needs to
// classify all characters of a block in 64 bytes of text at once (class_kernels.h).
//
// Text in a script that has no code of its own there is nearly all out of one to three such blocks, and spaces.
#pragma once

#include <array>
#include <cstdint>

#include "fastcompress/pretokenizer/class_bitmaps.h"
#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {

struct CharBlock {
    // The sets of its characters by class: those classes of the family that it has characters of.
    LastByteSets sets;
    std::array<RunClass, kMaxBlockSets> classes = {};
};

// The block that holds code points 64 `number` to 64 `number` + 63, below U+10000. Computed when it is first asked for,
// some microseconds; thread-safe.
const CharBlock& char_block(RunFamily family, uint32_t number);

}  // namespace fastcompress::pretokenizer
