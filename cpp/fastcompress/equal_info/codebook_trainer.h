// Learning a codebook from a corpus, by what the corpus' own greedy parse makes of it.
//
// Each round parses the corpus with the strings there are, and values every string that could be added or dropped:
//
// - A token that ends at x, before byte c, would end at x + 1 if its string extended by c were there. It is one byte
//   longer then, but what follows begins one byte later, which may be a better place to begin at, or a worse one: in
//   the middle of a word, say. With T[x] the number of tokens from x to the end, it is T[x] - T[x + 1] tokens that
//   are saved.
// - Without its last byte it would end at x - 1, which costs T[x - 1] - T[x].
//
// T is computed at every position, from the end: T[x] = 1 + T[x + length of the longest string at x].
//
// A string's value is the sum over the parse of 1 - g + g L (T[x] - T[x + 1]), with L the bytes a token. With g = 1
// it would be the tokens saved, to first order, but that is short-sighted: the first bytes of a long extension save
// nothing, until it reaches as far as the token after it did. With g = 0 every byte counts alike, which is how a trie
// is grown where all places are as good to begin at (Tunstall). So g is 1/5 at first and 4/5 in the last round. With
// 20 MB, 16 bits and 12 rounds, a held-out text had 4.83 bytes a token with g = 1, 5.08 with 0, 5.23 with 3/10, 5.245
// with 2/5, 5.23 with 1/2, 5.18 with 3/5; with g from 3/10 to 1/2 5.260, from 1/5 to 3/5 5.268, from 1/10 to 4/5
// 5.277; with 24 rounds, from 1/5 to 3/5 5.282, from 1/5 to 4/5 5.283.
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
    uint32_t rounds = 24;  // of exchanges, after the set has its size
    size_t num_threads = 1;
    bool within_words = false;  // strings are words, numbers, white space or symbols (FORMAT.md, "Words")
};

// The nodes of a codebook; a function of the documents, their order included, the settings but num_threads, and the
// nodes of the codebook to start from (or none). Of more than 128 MiB of text, every second, third ... block of 64
// KiB is used. kInvalidArgument: bits out of range, or a start of another size. Where the text is too small to tell
// which strings are of use, the shortest ones that are missing fill up. Some 30 ns a byte and round; 64 MiB of memory
// a thread, of which it uses at most 8.
Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start = {});

}  // namespace fastcompress::equal_info
