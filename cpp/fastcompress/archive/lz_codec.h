// The method "lz" on one block. FORMAT.md defines the coded form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/archive/lz_fields.h"
#include "fastcompress/common/status.h"

namespace fastcompress::archive {

inline constexpr unsigned kMaxLzLevel = 9;

// The bytes as coded, at any level from 1 to kMaxLzLevel. Deterministic; the coded form may be longer than the block.
// Time O(n) times what the level looks at; memory some 15 bytes a byte.
std::vector<uint8_t> lz_encode(Bytes block, unsigned level);

// The same for sequences of the caller's own, which cover the block.
std::vector<uint8_t> lz_encode_sequences(Bytes block, const std::vector<Sequence>& sequences, bool models_low_bits);

// Writes a block of exactly out.size() bytes, or says what is wrong. O(coded + out), whatever the bytes; 4 MiB of
// models.
Status lz_decode(Bytes coded, std::span<uint8_t> out);

}  // namespace fastcompress::archive
