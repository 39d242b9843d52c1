// Trains a codebook on a corpus, by the value of strings for the greedy parse of that corpus.
//
// Each round parses the corpus with the current strings, and values every string that could be added or dropped:
//
// - A token that ends at x, before byte c, would end at x + 1 if its string extended by c existed. Then the token is
//   one
//   byte longer, but the next one begins one byte later, which may be a better or a worse place: the middle of a word,
//   say. With T[x] the number of tokens from x to the end, that saves T[x] - T[x + 1] tokens.
// - Without its last byte the token would end at x - 1, which costs T[x - 1] - T[x].
//
// T is computed at every position, from the end: T[x] = 1 + T[x + length of the longest string at x].
//
// A string's value is the sum over the parse of 1 - g + g L (T[x] - T[x + 1]), with L the bytes per token.
// With g = 1 that is the number of tokens saved, to first order, but it is short-sighted: the first bytes of a long
// extension save nothing until it reaches as far as the next token did. With g = 0 every byte counts alike, which is
// how a trie is grown if all places are equally good to begin at (Tunstall). So g is 1/5 at first and 4/5 in the last
// round. With 20 MB, 16 bits and 12 rounds, a held-out text had 4.83 bytes per token with g = 1, 5.08 with 0, 5.23 with
// 3/10, 5.245 with 2/5, 5.23 with 1/2, 5.18 with 3/5; with g from 3/10 to 1/2 5.260, from 1/5 to 3/5 5.268, from 1/10
// to 4/5 5.277; with 24 rounds, from 1/5 to 3/5 5.282, from 1/5 to 4/5 5.283.
//
// Each round exchanges the least valuable strings that nothing extends for as many of the most valuable extensions,
// as long as these are worth more, and at most a number that falls from round to round. So the set stays
// prefix-closed and of one size. The set that took the fewest tokens is kept.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/string_values.h"

namespace fastcompress::equal_info {

struct TrainerSettings {
    unsigned bits = 16;
    uint32_t num_rounds = 24;  // rounds of exchanges, after the set has reached its size
    size_t num_threads = 1;
    bool within_words = false;  // strings are words, numbers, white space or symbols (FORMAT.md, "Words")
};

// Returns the nodes of a codebook. They depend on the documents and their order, on the settings except num_threads,
// and on the nodes of the codebook to start from, if any. If there are more than 128 MiB of text, every second, third
// ... block of 64 KiB is used. If the text is too small to tell which strings are useful, the shortest missing ones
// fill up. kInvalidArgument if `bits` is out of range or `start` has another size. About 30 ns per byte and round; 64
// MiB of memory per thread, for at most 8 threads.
Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start = {});

}  // namespace fastcompress::equal_info
