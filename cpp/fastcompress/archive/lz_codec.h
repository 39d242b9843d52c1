// The method "lz" on one block. FORMAT.md defines the coded form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/archive/lz_fields.h"
#include "fastcompress/common/status.h"

namespace fastcompress::archive {

inline constexpr unsigned kMaxLzLevel = 9;

// Encodes a block at a level from 1 to kMaxLzLevel. Deterministic. The result may be longer than the block. Takes time
// in proportion to n and the search effort of the level, and about 15 bytes of memory per byte.
std::vector<uint8_t> lz_encode(Bytes block, unsigned level);

// The same for the given sequences, which must cover the block.
std::vector<uint8_t> lz_encode_sequences(Bytes block, const std::vector<Sequence>& sequences, bool models_low_bits);

// Decodes a block of exactly out.size() bytes. kMalformed if it is invalid. O(coded + out) for any input; 4 MiB of
// models.
Status lz_decode(Bytes coded, std::span<uint8_t> out);

}  // namespace fastcompress::archive
