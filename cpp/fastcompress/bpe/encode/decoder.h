// Decoding: the bytes that token ids spell, one after the other.
#pragma once

#include <vector>

#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// The number of bytes that ids spell, or kUnknownToken for an id that is out of range or unused. O(tokens).
Result<size_t> decoded_size(const Vocabulary& vocabulary, std::span<const TokenId> tokens);

// Writes those bytes to the front of `out` and returns their number. kInvalidData if they do not fit, which happens
// only when another thread changed the ids after decoded_size read them. O(tokens + bytes).
Result<size_t> decode_to(const Vocabulary& vocabulary, std::span<const TokenId> tokens, std::span<uint8_t> out);

// Both in one.
Result<std::vector<uint8_t>> decode(const Vocabulary& vocabulary, std::span<const TokenId> tokens);

}  // namespace fastcompress::bpe
