// Which tokens may stand next to each other in a pretoken.
//
// By the lemmas of long_merge.h, tokens t1 ... tk are what merging their bytes gives if and only if each ti is what
// merging its own gives, and each ti ti+1 what merging theirs gives. So a table of pairs decides all sequences. It is
// filled by the definition: every pair is merged, many side by side.
#pragma once

#include <span>

#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/common/status.h"

namespace fastcompress::bpe {

// The bytes of a row of the table: one bit per id, the lowest bit first.
inline size_t pair_row_bytes(const Vocabulary& vocabulary) {
    return (vocabulary.size() + 7) / 8;
}

// Sets bit u of row t if the bytes of t and u, as one pretoken, are encoded as t u, and clears all others. `rows` has
// size() rows of pair_row_bytes(). Bits of ids that no encoding has (special, unused) are cleared.
// kInvalidArgument if the vocabulary has a token that encodes its own bytes only as a whole pretoken (with ignore_merges,
// say), so that pairs do not decide. O(size()^2 * bytes): about 15 s of one core for 8,192 ids.
Status canonical_pairs(const Vocabulary& vocabulary, size_t num_threads, std::span<uint8_t> rows);

}  // namespace fastcompress::bpe
