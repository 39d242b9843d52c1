// Added tokens, normalization and the options of format version 2: the matcher against a plain one, texts against their
// definition, files there and back. (The Python tests compare with `tokenizers`.)
#include <algorithm>

#include "check.h"
#include "fastcompress/bpe/encode/text_encoder.h"
#include "fastcompress/unicode/nfc.h"

namespace fastcompress::bpe {
namespace {

using pretokenizer::Pattern;

std::vector<std::string> byte_tokens() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return tokens;
}

VocabularySpec small_spec() {
    VocabularySpec spec;
    spec.pattern = Pattern::kGpt2;
    spec.tokens = byte_tokens();
    spec.tokens.insert(spec.tokens.end(), {"ab", "abc"});
    spec.merges = {{'a', 'b', 256}};  // nothing merges into "abc"
    return spec;
}

std::vector<TokenId> encode(const Vocabulary& vocabulary, std::string_view text, bool allow) {
    const TextEncoder text_encoder(vocabulary);
    Encoder encoder(vocabulary);
    TokenBuffer out;
    const std::vector<uint8_t> allowed(allow ? vocabulary.added_tokens().size() : 0, 1);
    text_encoder.encode(as_bytes(text), text_encoder.treatments(allowed), encoder, out);
    return {out.tokens().begin(), out.tokens().end()};
}

using Ids = std::vector<TokenId>;

void test_matcher() {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::string> texts;
        for (size_t i = random() % 8; i > 0; --i) {
            std::string text;
            for (size_t n = random() % 4 + 1; n > 0; --n) text += "ab<"[random() % 3];
            if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
        }
        std::vector<AddedTokenMatcher::Pattern> patterns;
        std::vector<Treatment> treatments;
        for (const std::string& text : texts) {
            patterns.push_back({text, static_cast<uint32_t>(patterns.size()), 0});
            treatments.push_back(random() % 4 ? Treatment::kToken : Treatment::kIgnored);
        }
        const AddedTokenMatcher matcher(patterns);
        std::string text;
        for (size_t n = random() % 20; n > 0; --n) text += "ab<"[random() % 3];
        for (size_t begin = 0; begin <= text.size(); ++begin) {
            size_t at = begin;
            size_t longest = 0;
            for (; at < text.size() && longest == 0; at += longest == 0) {
                for (size_t i = 0; i < texts.size(); ++i) {
                    if (treatments[i] == Treatment::kIgnored || !text.substr(at).starts_with(texts[i])) continue;
                    longest = std::max(longest, texts[i].size());
                }
            }
            const AddedTokenMatcher::Match match = matcher.find(as_bytes(text), begin, treatments);
            CHECK_EQ(match.begin, at);
            if (match.begin < text.size()) CHECK_EQ(match.end, at + longest);
        }
    }
}

void test_flags() {
    VocabularySpec spec = small_spec();
    spec.added_tokens = {
        {"<s>", 300, kSpecial}, {"<l>", 301, kLstrip}, {"<r>", 302, kRstrip}, {"<w>", 303, kSingleWord}};
    const Vocabulary vocabulary = std::move(*Vocabulary::make(spec));
    CHECK(encode(vocabulary, "a<s>b", true) == (Ids{'a', 300, 'b'}));
    CHECK(encode(vocabulary, "a<s>b", false) == (Ids{'a', '<', 's', '>', 'b'}));
    CHECK(encode(vocabulary, "a \xc2\xa0<l> b", false) == (Ids{'a', 301, ' ', 'b'}));
    CHECK(encode(vocabulary, "a <r> \n\xe3\x80\x80 b", false) == (Ids{'a', ' ', 302, 'b'}));
    CHECK(encode(vocabulary, "<r> <l><r>", false) == (Ids{302, 301, 302}));
    CHECK(encode(vocabulary, "a<w> <w>", false) == (Ids{'a', '<', 'w', '>', ' ', 303}));
    CHECK(encode(vocabulary, "<w>\xc3\xa9", false) == (Ids{'<', 'w', '>', 0xc3, 0xa9}));
    const TextEncoder text_encoder(vocabulary);
    CHECK(text_encoder.has_special(as_bytes("a<s>b")));
    CHECK(!text_encoder.has_special(as_bytes("a<l><w> s>")));  // added tokens, but not special ones
    CHECK(!TextEncoder(*Vocabulary::make(small_spec())).has_special(as_bytes("<s>")));
}

void test_options() {
    VocabularySpec spec = small_spec();
    CHECK(encode(*Vocabulary::make(spec), "abc abc", false) == (Ids{256, 'c', ' ', 256, 'c'}));
    spec.ignore_merges = true;
    CHECK(encode(*Vocabulary::make(spec), "abc abc", false) == (Ids{257, ' ', 256, 'c'}));
    spec.prefix_space = true;
    spec.added_tokens = {{"<x>", 300, kNormalized}};
    CHECK(encode(*Vocabulary::make(spec), "abc<x> ab<x>", false) == (Ids{' ', 256, 'c', 300, ' ', 256, 300}));
    CHECK(encode(*Vocabulary::make(spec), "", false).empty());
    spec.normalizer = Normalizer::kNfc;
    spec.added_tokens.push_back({"\xc3\xa9", 301, kNormalized});  // e with acute
    spec.added_tokens.push_back({"e\xcc\x81!", 302, 0});
    CHECK(encode(*Vocabulary::make(spec), "e\xcc\x81", false) == Ids{301});
    CHECK(encode(*Vocabulary::make(spec), "e\xcc\x81!", false) == Ids{302});
    CHECK(encode(*Vocabulary::make(spec), "\xc3\xa9!", false) == (Ids{301, ' ', '!'}));
}

void test_missing_bytes() {
    VocabularySpec spec = small_spec();
    for (const int byte : {0xc0, 0xc1, 0xf5, 0xff}) spec.tokens[static_cast<size_t>(byte)].clear();
    CHECK(!Vocabulary::make(spec).ok());
    spec.tokens.insert(spec.tokens.end(), {"\xef\xbf", "\xef\xbf\xbd"});
    spec.merges.push_back({0xef, 0xbf, 258});
    spec.merges.push_back({258, 0xbd, 259});
    const Vocabulary vocabulary = std::move(*Vocabulary::make(spec));
    CHECK(!vocabulary.has_all_bytes());
    CHECK(encode(vocabulary, "ab\xff\xfe", false) == (Ids{256, 259, 0xfe}));
    spec.tokens['a'].clear();
    CHECK(!Vocabulary::make(spec).ok());
}

void test_files() {
    VocabularySpec spec = small_spec();
    CHECK_EQ(std::move(*Vocabulary::make(spec)).serialize()[8], 1);
    spec.added_tokens = {{"<x>", 300, kSpecial}, {"ab", 256, kSharesId | kLstrip}, {"y", 301, kNeverMatched}};
    spec.ignore_merges = true;
    spec.normalizer = Normalizer::kNfc;
    spec.custom_pattern = "[]";
    spec.metadata = "{}";
    const std::vector<uint8_t> blob = std::move(*Vocabulary::make(spec)).serialize();
    CHECK_EQ(blob[8], 2);
    CHECK(std::move(*Vocabulary::parse(blob)).serialize() == blob);
    CHECK((*Vocabulary::parse(blob)).custom_pattern() == "[]");
    spec.added_tokens[1].flags = 0;  // the id of "ab", unsaid
    CHECK(!Vocabulary::make(spec).ok());
    spec.added_tokens[1] = {"ab", 299, kSharesId};  // the id of nothing
    CHECK(!Vocabulary::make(spec).ok());
    spec.added_tokens = {{"e\xcc\x81", 300, kNormalized}, {"\xc3\xa9", 301, kNormalized}};  // the same, normalized
    CHECK(!Vocabulary::make(spec).ok());
}

std::string nfc(std::string_view text) {
    std::vector<uint8_t> out;
    return unicode::normalize_nfc(as_bytes(text), out) ? std::string(as_chars(Bytes(out))) : std::string(text);
}

void test_nfc() {
    CHECK(nfc("e\xcc\x81") == "\xc3\xa9");
    CHECK(nfc("e\xcc\x81\xff") == "\xc3\xa9\xff");
    CHECK(nfc("\xff\xcc\x81") == "\xff\xcc\x81");                          // nothing composes across a stray byte
    CHECK(nfc("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8") == "\xea\xb0\x81");  // Hangul letters
    CHECK(nfc("\xe2\x84\xab") == "\xc3\x85");                              // the sign for angstrom
    std::mt19937 random(2);
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (size_t n = random() % 12; n > 0; --n) {
            static constexpr std::string_view kPieces[] = {"a",
                                                           "e",
                                                           " ",
                                                           "\xcc\x81",
                                                           "\xcc\xa3",
                                                           "\xcd\x85",
                                                           "\xff",
                                                           "\xcc",
                                                           "\xe1\x84\x80",
                                                           "\xe1\x85\xa1",
                                                           "\xe1\x86\xa8",
                                                           "\xea\xb0\x80",
                                                           "\xe1\xbb\x87",
                                                           "\xf0\x9d\x85\x9e",
                                                           "\xe4\xb8\xad"};
            text += kPieces[random() % std::size(kPieces)];
        }
        const std::string normal = nfc(text);
        CHECK(nfc(normal) == normal);
        CHECK(normal.size() <= text.size() * unicode::kMaxNfcExpansion);
    }
    std::string marks = "a";
    for (int i = 0; i < 200000; ++i) marks += i % 2 ? "\xcc\x81" : "\xcc\xa3";  // not quadratic
    CHECK_EQ(nfc(marks).size(), marks.size());
}

}  // namespace
}  // namespace fastcompress::bpe

int main() {
    fastcompress::bpe::test_matcher();
    fastcompress::bpe::test_flags();
    fastcompress::bpe::test_options();
    fastcompress::bpe::test_missing_bytes();
    fastcompress::bpe::test_files();
    fastcompress::bpe::test_nfc();
    return fastcompress::testing::report();
}
