// tiktoken's rank files: a line a token, its bytes in base64, white space, and its rank in decimal digits.
#pragma once

#include <string>
#include <vector>

#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// The tokens of a rank file by rank, empty where a rank is unused: VocabularySpec::tokens. kMalformed, with the line's
// number, for a line that is not `base64 rank`, for an empty token, for a rank of kMaxVocabularySize or more or that
// stands twice, and for a file without tokens; kInvalidArgument when over kMaxUnusedIds ranks are unused. Whether each
// token stands once is left to Vocabulary::make, which must hash them all. O(file).
Result<std::vector<std::string>> parse_rank_file(Bytes file);

// kMalformed, with the line's number, for the first token of a rank file that stands on an earlier line too. For files
// that parse_rank_file accepts and Vocabulary::make does not. O(file).
Status find_repeated_token(Bytes file);

// The rank file of a vocabulary: every ordinary token, by id. kInvalidArgument, with the reason, unless ranks say all
// that the order of merges says, so that the file encodes every text to the same ids. O(bytes of tokens).
Result<std::string> write_rank_file(const Vocabulary& vocabulary);

}  // namespace fastcompress::bpe
