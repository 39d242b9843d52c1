// Trains a dictionary on a corpus, by rounds of exchanging strings.
//
// Each round parses the corpus and adds the strings that join the most frequent pairs of adjacent tokens. Then it
// parses the corpus with all of these, and drops as many strings: those that save least (token_counts.h). The number of
// exchanges falls from round to round, and the set that took the fewest tokens is kept.
//
// Tried with 8,192 strings, 14 MB of English and BPE's strings to start from, bytes per token of a held-out text:
// strings dropped by how often they are taken times the tokens that their bytes alone would cost, 3.603; by what they
// save in the parse, 3.609; by that, at most 4, 8, 12 or 20 of it in one text, 3.613, 3.620, 3.620, 3.620. Joining
// three tokens as well: 3.729 instead of 3.720 in training, but no more on the held-out text.
//
// Without strings to start from, the set first grows from the single bytes in the same way, adding half as many strings
// as there are at a time. The strings of a BPE vocabulary are a somewhat better start.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::greedy_dictionary {

struct TrainerSettings {
    size_t size = 8192;        // strings
    uint32_t num_rounds = 12;  // rounds of exchanges, after the set has reached its size
    size_t num_threads = 1;
    bool within_words = true;  // strings are words, numbers, white space or symbols (common/words.h)
};

// Returns the strings of a dictionary, in lexicographic order. They depend on the documents and their order, on `start`
// and on the settings except num_threads. If there are more than 128 MiB of text, every second, third ... block of
// 64 KiB is used. kInvalidArgument if a setting is out of range, `start` has more strings than `size`, or one that is
// empty, too long, or does not keep to words; kInvalidData if the text is too small for so many strings.
// About 20 ns per byte and round; memory of about the text's size, and 16 bytes per distinct pair and thread.
Result<std::vector<std::string>> train_dictionary(std::span<const Bytes> documents, const TrainerSettings& settings,
                                                  std::vector<std::string> start = {});

}  // namespace fastcompress::greedy_dictionary
