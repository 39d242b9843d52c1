// The method "cm" on one block: an untrained adaptive ContextMixer predicts every byte. FORMAT.md defines the coded
// form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::archive {

inline constexpr unsigned kMaxCmLevel = 9;

// Encodes a block. O(n); encoding and decoding take about 1 us per byte. Memory: the table of the model, 2^(17 + level)
// bytes, less for a small block, and at most 17 MiB more.
std::vector<uint8_t> cm_encode(Bytes block, unsigned level);

// Decodes a block of exactly out.size() bytes. kMalformed if it is invalid. O(out) for any input.
Status cm_decode(Bytes coded, unsigned level, std::span<uint8_t> out);

}  // namespace fastcompress::archive
