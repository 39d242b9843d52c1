// Texts are parsed, appended, cut and compared; the same bytes taken as tokens and ids from nowhere must be refused or
// decode.
#include <cstdlib>

#include "fastcompress/lz77/buckets.h"
#include "fastcompress/lz77/incremental_parser.h"
#include "fastcompress/lz77/lzp.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/reconstruct.h"

namespace fastcompress::lz77 {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

void expect(bool holds) {
    if (!holds) std::abort();
}

bool equal(const TokenColumns& a, const TokenColumns& b) {
    return a.kinds == b.kinds && a.values == b.values && a.lengths == b.lengths;
}

void test_text(Bytes text, const Params& params, size_t cut) {
    const TokenColumns tokens = parse(text, params);
    const auto size = reconstructed_bytes(tokens.kinds, tokens.values, tokens.lengths, text.size());
    expect(size.ok() && *size == text.size());
    std::vector<uint8_t> back(text.size());
    expect(reconstruct(tokens.kinds, tokens.values, tokens.lengths, back));
    expect(std::ranges::equal(back, text));

    IncrementalParser parser(params);
    for (const uint8_t byte : text) parser.append(byte);
    expect(equal(parser.tokens(), tokens));
    const IncrementalParser copy = parser;
    parser.truncate(std::min(cut, text.size()));
    expect(equal(parser.tokens(), parse(text.first(std::min(cut, text.size())), params)));
    parser.append(text.subspan(std::min(cut, text.size())));
    expect(equal(parser.tokens(), tokens) && equal(copy.tokens(), tokens));

    const BucketAlphabet alphabet(params);
    const auto decoded = alphabet.decode(alphabet.encode(tokens));
    expect(decoded.ok() && equal((*decoded).tokens, tokens));
}

void test_ids(Bytes bytes, const Params& params, const LzpParams& lzp) {
    std::vector<uint32_t> ids;
    for (size_t i = 0; i + 2 <= bytes.size(); i += 2) ids.push_back(bytes[i] | uint32_t{bytes[i + 1]} << 8);
    const BucketAlphabet alphabet(params);
    for (uint32_t& id : ids) id %= alphabet.num_ids();
    if (const auto decoded = alphabet.decode(ids); decoded.ok()) {
        const TokenColumns& tokens = (*decoded).tokens;
        const auto size = reconstructed_bytes(tokens.kinds, tokens.values, tokens.lengths, kMostBytes);
        if (size.ok()) {
            std::vector<uint8_t> out(*size);
            expect(reconstruct(tokens.kinds, tokens.values, tokens.lengths, out));
        }
    }
    for (uint32_t& id : ids) id %= 300;
    if (const auto decoded = lzp_decode(ids, lzp, kMostBytes); decoded.ok()) {
        const auto again = lzp_decode(lzp_encode(*decoded, lzp), lzp, kMostBytes);
        expect(again.ok() && *again == *decoded);
    }
}

}  // namespace
}  // namespace fastcompress::lz77

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fastcompress::lz77;
    constexpr size_t kSettings = 6;
    if (size < kSettings || size > 4096) return 0;
    Params params;
    params.window = data[0] == 0 ? kUnlimited : data[0];
    params.min_length = 1 + data[1] % 12;
    params.max_length = data[2] == 0 ? kUnlimited : params.min_length + data[2];
    params.depth = data[3] == 0 ? kUnlimited : data[3];
    params.rule = data[4] % 2 == 0 ? ParseRule::kGreedy : ParseRule::kLazy;
    const LzpParams lzp = {1u + data[4] % 8, 1u + data[1] % 8, 300};
    const fastcompress::Bytes text(data + kSettings, size - kSettings);
    test_text(text, params, size_t{data[5]} * 16);
    test_ids(text, params, lzp);
    return 0;
}
