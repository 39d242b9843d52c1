// Learning a codebook from a corpus, by counting what its own greedy parse would gain and lose.
//
// Each round parses the corpus with the strings there are, and prices every change by the number of tokens it is worth:
//
// - Let T[x] be the number of tokens from position x to the end. It is computed for every x, from the end, out of the longest
//   string at x: T[x] = 1 + T[x + length]. So T[x] is known also where the parse does not come by.
// - Where a token ends at x, before byte c, its string extended by c would end it at x + 1 instead: that gains T[x] - T[x + 1].
// - Without its last byte it would end at x - 1: that loses T[x - 1] - T[x].
//
// Summed over the parse, these are the exact values of adding one string, or dropping one that no other extends, to first
// order: what a change does to others is seen in the next round only. Each round exchanges some of the least valuable strings for as many
// of the most promising extensions, fewer from round to round; the set with the fewest tokens is kept. Extensions are of single
// bytes of strings there are, and what is extended is not dropped, so the set stays prefix-closed.
//
// Counting occurrences instead of tokens (every extension gains 1 each time) does worse: see benchmarks/LOG.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fastcompress/arithmetic/codebook.h"

namespace fastcompress::arithmetic {

struct Document {
    Bytes text;
    std::span<const uint64_t>
        ends;  // of the pieces that no string may reach across, the last one the text's size; or empty
};

struct TrainerSettings {
    unsigned bits = 16;
    uint32_t rounds = 24;  // of exchanges, after the set has its size
    size_t num_threads = 1;
    bool within_words = false;  // strings are words, numbers, white space or symbols (CODEBOOK.md, "Words")
};

// The nodes of a codebook; a function of the documents, their order included, and the settings but num_threads.
// kInvalidArgument: settings out of range. Where documents are too small to tell which strings are of use, single bytes are
// extended by others in ascending order. Time some 30 ns a byte and round; memory 10 bytes a byte of a block of 256 KiB
// and 64 MiB a thread, and the documents.
Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start = {});

}  // namespace fastcompress::arithmetic
