// A code whose matches have no distance: the position to copy from is predicted (FORMAT.md, "LZP").
//   order 2, "abcdXabcd"   ->   a b c d X a b (match of 2)      after "ab", position 2 ("cd") is the predicted source
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::lz77 {

struct LzpParams {
    uint32_t order = 4;         // number of bytes of context, 1 to 64
    uint32_t min_length = 2;    // smallest length of a match, at least 1
    uint32_t max_length = 258;  // largest length of a match, min_length to 2^30
    uint32_t num_ids() const { return 256 + max_length - min_length + 1; }
};

Status check(const LzpParams& params);

// Encodes a text to ids: a byte, or 256 + length - min_length for a match. Requires at most kMaxTextBytes bytes and
// params that pass check(). O(n) expected.
std::vector<uint32_t> lzp_encode(Bytes text, const LzpParams& params);

// Decodes ids from any source. kMalformed for the first invalid id, or if the text would exceed max_bytes. O(ids +
// bytes).
Result<std::vector<uint8_t>> lzp_decode(std::span<const uint32_t> ids, const LzpParams& params, size_t max_bytes);

}  // namespace fastcompress::lz77
