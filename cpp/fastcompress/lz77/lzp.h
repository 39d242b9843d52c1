// A code in which a match has no distance: where it copies from is predicted. FORMAT.md, "LZP".
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::lz77 {

struct LzpParams {
    uint32_t order = 4;         // bytes of context, 1 to 64
    uint32_t min_length = 2;    // of a match, at least 1
    uint32_t max_length = 258;  // at least min_length, at most 2^30
    uint32_t num_ids() const { return 256 + max_length - min_length + 1; }
};

Status check(const LzpParams& params);

// Ids: a byte, or 256 + length - min_length. The text has at most kMaxTextBytes bytes, the params are valid. O(n)
// expected.
std::vector<uint32_t> lzp_encode(Bytes text, const LzpParams& params);

// The bytes that ids from anywhere stand for, at most max_bytes; or what is wrong with the first bad one. O(ids +
// bytes).
Result<std::vector<uint8_t>> lzp_decode(std::span<const uint32_t> ids, const LzpParams& params, size_t max_bytes);

}  // namespace fastcompress::lz77
