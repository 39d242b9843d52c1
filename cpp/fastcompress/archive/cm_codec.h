// The method "cm" on one block: every byte predicted by an adaptive ContextMixer that begins knowing nothing. FORMAT.md
// defines the coded form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::archive {

inline constexpr unsigned kMaxCmLevel = 9;

// O(n), about 1 us a byte each way. Memory: the model's table, 2^(17 + level) bytes or less for a small block, and 17
// MiB at most.
std::vector<uint8_t> cm_encode(Bytes block, unsigned level);

// Writes a block of exactly out.size() bytes, or says what is wrong. O(out), whatever the bytes.
Status cm_decode(Bytes coded, unsigned level, std::span<uint8_t> out);

}  // namespace fastcompress::archive
