// From tokens back to bytes, safe for tokens from anywhere.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

// How many bytes tokens stand for, or what is wrong with the first bad one: an unknown kind, a literal that is no byte
// or not of length 1, a match of length 0 or from before the beginning, more than max_bytes in all. The columns are
// equally long. O(number of tokens), whatever they say.
Result<size_t> reconstructed_bytes(std::span<const uint8_t> kinds, std::span<const uint32_t> values,
                                   std::span<const uint32_t> lengths, size_t max_bytes);

// Writes the bytes of tokens that reconstructed_bytes() has passed; `out` is that long. O(its size).
void reconstruct(std::span<const uint8_t> kinds, std::span<const uint32_t> values, std::span<const uint32_t> lengths,
                 uint8_t* out);

}  // namespace fastcompress::lz77
