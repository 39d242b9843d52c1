// Any bytes as a vocabulary file, its checksum made right so that the parser behind it is reached; what parses must
// encode and decode, added tokens and normalization included, and serialize to a file that parses to itself.
#include <algorithm>
#include <cstdlib>

#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/text_encoder.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/common/sha256.h"

using namespace fastcompress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<uint8_t> blob(data, data + size);
    const Sha256Digest digest = sha256(blob);
    blob.insert(blob.end(), digest.begin(), digest.end());
    auto vocabulary = bpe::Vocabulary::parse(blob);
    if (!vocabulary.ok()) return 0;
    if (vocabulary->serialize() != blob) std::abort();
    bpe::Encoder encoder(*vocabulary);
    bpe::TokenBuffer ids;
    encoder.encode(Bytes(data, size), ids);
    auto decoded = bpe::decode(*vocabulary, ids.tokens());
    if (!decoded.ok()) std::abort();
    if (vocabulary->has_all_bytes() && !std::ranges::equal(*decoded, Bytes(data, size))) std::abort();

    const bpe::TextEncoder text_encoder(*vocabulary);
    const std::vector<uint8_t> allowed(vocabulary->added_tokens().size(), 1);
    ids.clear();
    text_encoder.encode(Bytes(data, size), text_encoder.treatments(allowed), encoder, ids);
    if (!bpe::decode(*vocabulary, ids.tokens()).ok()) std::abort();
    return 0;
}
