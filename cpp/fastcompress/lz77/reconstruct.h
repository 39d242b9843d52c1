// Decodes tokens to bytes. Tokens may come from any source: malformed ones are found before anything is written.
//
// The columns may belong to a program that changes them while they are read. Each value is therefore loaded once per
// pass and checked again where a write depends on it.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

// Checks one token by itself: kMalformed for an unknown kind, a literal that is not a byte or not of length 1, or a
// match of length or distance 0. The message calls it by `index`.
Status check_token(uint32_t kind, uint32_t value, uint32_t length, size_t index);

// Returns the number of bytes that tokens decode to. kMalformed for the first token that check_token() rejects, that
// copies from before the beginning, or that ends past max_bytes. Requires columns of equal length. O(tokens).
Result<size_t> reconstructed_bytes(std::span<const uint8_t> kinds, std::span<const uint32_t> values,
                                   std::span<const uint32_t> lengths, size_t max_bytes);

// Decodes tokens that reconstructed_bytes() has accepted to `out`, which must have that size. If the columns have
// changed since then and no longer fill `out`, returns false; never writes outside of `out`. O(tokens + bytes).
[[nodiscard]] bool reconstruct(std::span<const uint8_t> kinds, std::span<const uint32_t> values,
                               std::span<const uint32_t> lengths, std::span<uint8_t> out);

}  // namespace fastcompress::lz77
