#include "fastcompress/bpe/encode/decoder.h"

#include "fastcompress/common/read_once.h"

namespace fastcompress::bpe {

Result<size_t> decoded_size(const Vocabulary& vocabulary, std::span<const TokenId> tokens) {
    size_t num_bytes = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const TokenId id = read_once(tokens[i]);
        const size_t length = id < vocabulary.size() ? vocabulary.token_bytes(id).size() : 0;
        if (length == 0) {
            return unknown_token("token id " + std::to_string(id) + " at position " + std::to_string(i) +
                                 " is not in the vocabulary of " + std::to_string(vocabulary.size()) +
                                 " ids; decode with the tokenizer that encoded it");
        }
        num_bytes += length;
    }
    return num_bytes;
}

Result<size_t> decode_to(const Vocabulary& vocabulary, std::span<const TokenId> tokens, std::span<uint8_t> out) {
    size_t size = 0;
    for (const TokenId& token : tokens) {
        const TokenId id = read_once(token);  // another thread may change it, which must not write past the end
        const Bytes bytes = id < vocabulary.size() ? vocabulary.token_bytes(id) : Bytes();
        if (bytes.size() > out.size() - size) return invalid_data("the token ids changed while they were decoded");
        constexpr size_t kWide = Vocabulary::kReadableBytes;
        if (bytes.size() <= kWide && out.size() - size >= kWide) {  // what is too much, the next tokens overwrite
            if (!bytes.empty()) std::memcpy(out.data() + size, bytes.data(), kWide);
        } else {
            std::memcpy(out.data() + size, bytes.data(), bytes.size());
        }
        size += bytes.size();
    }
    return size;
}

Result<std::vector<uint8_t>> decode(const Vocabulary& vocabulary, std::span<const TokenId> tokens) {
    Result<size_t> size = decoded_size(vocabulary, tokens);
    if (!size.ok()) return size.status();
    std::vector<uint8_t> out(*size);
    size = decode_to(vocabulary, tokens, out);
    if (!size.ok()) return size.status();
    out.resize(*size);
    return out;
}

}  // namespace fastcompress::bpe
