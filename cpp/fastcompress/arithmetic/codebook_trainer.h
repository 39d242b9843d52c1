// Learning a codebook from a corpus, by what the corpus' own greedy parse makes of it.
//
// Each round parses the corpus with the strings there are, and values every string that could be added or dropped:
//
// - A token that ends at x, before byte c, would end at x + 1 if its string extended by c were there. It is one byte longer then,
//   but what follows begins one byte later, which may be a better place to begin at, or a worse one: in the middle of a word, say.
//   With T[x] the number of tokens from x to the end, it is T[x] - T[x + 1] tokens that are saved.
// - Without its last byte it would end at x - 1, which costs T[x - 1] - T[x].
//
// T is computed at every position, from the end: T[x] = 1 + T[x + length of the longest string at x].
//
// A string's value is the sum over the parse of 3/5 + 2/5 L (T[x] - T[x + 1]), with L the bytes a token. The second term alone would
// be the tokens saved, to first order, but it is short-sighted: the first bytes of a long extension save nothing, until it
// reaches as far as the token after it did. The first term alone, every byte counted alike, is how a trie is grown where all
// places are as good to begin at (Tunstall). At equal effort, with 20 MB, bits = 16, a held-out text had 4.83 bytes a token with
// the second term alone, 5.08 with the first, 5.24 with both; shares of 3/10 and 5/10 gave 5.23, 6/10 5.18.
//
// Each round exchanges the least valuable strings that nothing extends for as many of the most valuable extensions, as long as these
// are worth more, and at most a number that falls from round to round. So the set stays prefix-closed and of one size. The
// set that took the fewest tokens is kept.

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

// The nodes of a codebook; a function of the documents, their order included, the settings but num_threads, and the nodes of
// the codebook to start from (or none). Of more than 128 MiB of text, every second, third ... block of 64 KiB is used.
// kInvalidArgument: bits out of range, or a start of another size. Where the text is too small to tell which strings are of
// use, the shortest ones that are missing fill up. Some 30 ns a byte and round; 64 MiB of memory a thread, of which it uses
// at most 8.
Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start = {});

}  // namespace fastcompress::arithmetic
