// Chooses the literals and matches of a block. The choice is the encoder's alone: the format allows any.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/archive/lz_fields.h"
#include "fastcompress/archive/lz_prices.h"

namespace fastcompress::archive {

// Returns the tokens of the lazy parse of lz77 as sequences, without matches shorter than min_length. O(n * depth).
std::vector<Sequence> parse_lazily(Bytes text, uint32_t min_length, uint32_t depth);

// Returns sequences of nearly the lowest price. `depth` and `nice` as in match_tree.h. O(n * depth * nice) at worst.
std::vector<Sequence> parse_by_price(Bytes text, const Prices& prices, uint32_t depth, uint32_t nice);

}  // namespace fastcompress::archive
