// The rank files of tiktoken: one line per token, with its bytes in base64, white space, and its rank in decimal.
//   YWI= 256        the token "ab" has rank 256
#pragma once

#include <string>
#include <vector>

#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// Returns the tokens of a rank file by rank, empty for an unused rank, as VocabularySpec::tokens has them. kMalformed,
// with the number of the line, for a line that is not `base64 rank`, an empty token, a repeated rank, or a rank of
// kMaxVocabularySize or more; also for a file without tokens. kInvalidArgument if more than kMaxUnusedIds ranks are
// unused. Does not check that tokens are distinct: Vocabulary::make does, which must hash them all. O(file).
Result<std::vector<std::string>> parse_rank_file(Bytes file);

// Returns kMalformed, with the number of the line, for the first token of a rank file that is also on an earlier line.
// For files that parse_rank_file accepts and Vocabulary::make rejects. O(file).
Status find_repeated_token(Bytes file);

// Returns the rank file of a vocabulary: every ordinary token, by id. kInvalidArgument, with the reason, unless the
// file encodes every text to the same ids, which requires that ranks determine the order of merges. O(bytes of tokens).
Result<std::string> write_rank_file(const Vocabulary& vocabulary);

}  // namespace fastcompress::bpe
