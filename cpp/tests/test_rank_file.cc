// Rank files read and written, and decoding. (The Python tests compare the reader with one in Python, and ids with
// tiktoken's.)
#include "fastcompress/bpe/vocabulary/rank_file.h"

#include <algorithm>

#include "check.h"
#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {
namespace {

std::vector<std::string> all_bytes() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return tokens;
}

Vocabulary ranked(std::vector<std::string> tokens) {
    VocabularySpec spec;
    spec.order = MergeOrder::kRanks;
    spec.pattern = pretokenizer::Pattern::kNone;
    spec.tokens = std::move(tokens);
    spec.added_tokens = {{"<|b|>", 400}, {"<|a|>", 300}, {"<|also a|>", 300}};
    return std::move(*Vocabulary::make(std::move(spec)));
}

void test_round_trip() {
    std::mt19937 random(1);
    std::vector<std::string> tokens = all_bytes();
    tokens.resize(300);  // 256 to 259 unused
    for (size_t rank = 260; rank < 300; ++rank) {
        tokens[rank].resize(2 + random() % 40);
        for (char& c : tokens[rank]) c = static_cast<char>(random());
    }
    Result<std::string> file = write_rank_file(ranked(tokens));
    CHECK(file.ok());
    Result<std::vector<std::string>> read = parse_rank_file(as_bytes(*file));
    CHECK(read.ok() && *read == tokens);
    CHECK(find_repeated_token(as_bytes(*file)).ok());
    for (size_t size = 0; size < file->size(); size += 7) {  // truncated: fewer tokens or an error, nothing else
        read = parse_rank_file(as_bytes(*file).first(size));
        if (read.ok()) CHECK(std::ranges::equal(*read, std::span(tokens).first(read->size())));
    }
}

void test_refused_files() {
    const auto message = [](std::string_view file) {
        const Result<std::vector<std::string>> tokens = parse_rank_file(as_bytes(file));
        return tokens.ok() ? std::string() : tokens.status().message;
    };
    CHECK_EQ(message("YQ== 0\n\n YWI= \t1 \r\nYWJj 2"), "");
    CHECK(message("").starts_with("is empty"));
    CHECK(message("YQ== 0\nYQ 1\n").starts_with("line 2: expected"));
    CHECK(message("YQ== 0\nY=Q= 1\n").starts_with("line 2: expected"));
    CHECK(message("\nYQ==\n").starts_with("line 2: expected"));
    CHECK(message("==== 0").starts_with("line 1: expected"));
    CHECK(message("YQ== 0\nYg== 0").starts_with("line 2: the rank 0"));
    CHECK(message("YQ== " + std::to_string(kMaxVocabularySize)).starts_with("line 1: the token is empty or"));
    const std::string greatest = std::to_string(kMaxVocabularySize - 1);
    CHECK(message("YQ== " + greatest).starts_with("line 1: rank " + greatest + " in so short a file"));
    const Status repeated = find_repeated_token(as_bytes("YQ== 0\nYg== 1\n\nYQ== 2\n"));
    CHECK(!repeated.ok() && repeated.message.starts_with("line 4: the token of rank 2"));
}

void test_decoding() {
    std::vector<std::string> tokens = all_bytes();
    tokens.push_back("a token that is longer than sixteen bytes");
    const Vocabulary vocabulary = ranked(tokens);
    const std::vector<TokenId> ids = {'x', 256, 'y', 300, 400};
    const std::string text = "x" + tokens[256] + "y<|a|><|b|>";
    CHECK_EQ(*decoded_size(vocabulary, ids), text.size());
    std::vector<uint8_t> out(text.size() + 20, 0xee);
    CHECK_EQ(*decode_to(vocabulary, ids, out), text.size());
    CHECK_EQ(as_chars(Bytes(out).first(text.size())), text);
    out.assign(text.size(), 0xee);  // no room to spare
    CHECK_EQ(*decode_to(vocabulary, ids, out), text.size());
    CHECK_EQ(as_chars(out), text);
    CHECK(!decode_to(vocabulary, ids, std::span(out).first(text.size() - 1)).ok());
    for (const TokenId unknown : {257u, 399u, 401u, kNoToken}) {
        const std::vector<TokenId> some = {'x', unknown};
        CHECK(decode(vocabulary, some)
                  .status()
                  .message.starts_with("token id " + std::to_string(unknown) + " at position 1"));
    }
    CHECK(decode(vocabulary, {})->empty());
    CHECK_EQ(vocabulary.token_id(as_bytes("x")), TokenId{'x'});
    CHECK_EQ(vocabulary.token_id(as_bytes("<|also a|>")), TokenId{300});
    CHECK_EQ(vocabulary.token_id(as_bytes("xy")), kNoToken);
    CHECK_EQ(vocabulary.token_id(Bytes()), kNoToken);
}

}  // namespace
}  // namespace fastcompress::bpe

int main() {
    fastcompress::bpe::test_round_trip();
    fastcompress::bpe::test_refused_files();
    fastcompress::bpe::test_decoding();
    return fastcompress::testing::report();
}
