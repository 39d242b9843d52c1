// Which literals and matches a block is coded with: the encoder's choice alone, the format takes any.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/archive/lz_fields.h"
#include "fastcompress/archive/lz_prices.h"

namespace fastcompress::archive {

// The tokens of lz77's lazy parse, as sequences, without matches of less than min_length. O(n * depth).
std::vector<Sequence> parse_lazily(Bytes text, uint32_t min_length, uint32_t depth);

// The sequences of least price, nearly. `depth` and `nice` as in match_tree.h; O(n * depth * nice) at worst.
std::vector<Sequence> parse_by_price(Bytes text, const Prices& prices, uint32_t depth, uint32_t nice);

}  // namespace fastcompress::archive
