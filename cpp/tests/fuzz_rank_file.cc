// Any bytes as a rank file; what parses must be written as a file that parses to the same tokens.
#include <cstdlib>

#include "fastcompress/bpe/vocabulary/rank_file.h"

using namespace fastcompress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Bytes file(data, size);
    auto tokens = bpe::parse_rank_file(file);
    const bool repeated = !bpe::find_repeated_token(file).ok();
    if (!tokens.ok() || repeated) return 0;
    bpe::VocabularySpec spec;
    spec.order = bpe::MergeOrder::kRanks;
    spec.tokens = *tokens;
    auto vocabulary = bpe::Vocabulary::make(std::move(spec));
    if (!vocabulary.ok()) return 0;  // a byte is missing, most likely
    auto written = bpe::write_rank_file(*vocabulary);
    if (!written.ok() || *bpe::parse_rank_file(as_bytes(*written)) != *tokens) std::abort();
    return 0;
}
