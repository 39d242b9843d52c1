// Every pattern on buffers that end where AddressSanitizer sees a read past them: characters cut short, bytes that begin
// no character, and lengths around those at which words and windows of bitmaps end; and the pretokens found are those of
// the scanner alone. (tests/test_pretokenizer.py compares the patterns with their regexes.)
#include <algorithm>

#include "check.h"
#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/pretokenizer/pretokenizer.h"
#include "scan_plainly.h"

namespace fastcompress {
namespace {

bpe::Vocabulary bytes_alone(pretokenizer::Pattern pattern) {
    bpe::VocabularySpec spec;
    spec.pattern = pattern;
    for (int byte = 0; byte < 256; ++byte) spec.tokens.push_back(std::string(1, static_cast<char>(byte)));
    return std::move(*bpe::Vocabulary::make(std::move(spec)));
}

void test_text(const bpe::Vocabulary& vocabulary, bpe::Encoder& encoder, const std::string& text) {
    const std::vector<uint8_t> exact(text.begin(), text.end());  // allocated to the byte
    std::vector<size_t> ends;
    const uint8_t* end = exact.data();
    pretokenizer::for_each_pretoken(vocabulary.pattern(), exact, [&](Bytes pretoken) {
        CHECK(!pretoken.empty() && pretoken.data() == end);
        end += pretoken.size();
        ends.push_back(static_cast<size_t>(end - exact.data()));
    });
    CHECK(ends == testing::scan_plainly(vocabulary.pattern(), exact));
    CHECK(end == exact.data() + exact.size());
    bpe::TokenBuffer ids;
    encoder.encode(exact, ids);
    CHECK(std::ranges::equal(ids.tokens(), exact));  // the ids of single bytes
}

void test_ends_of_buffers() {
    const std::string full[] = {"\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xcc\x81"};
    std::vector<std::string> tails = {"", "'", "'r", "'\xc5", "\n", " ", "  ", "12", "\xed\xa0\x80", "\xc0\x80"};
    for (const std::string& character : full) {
        for (size_t size = 1; size <= character.size(); ++size) tails.push_back(character.substr(0, size));
    }
    for (int lead = 0xf5; lead <= 0xff; ++lead) {
        tails.push_back(std::string(1, static_cast<char>(lead)));
        tails.push_back(tails.back() + "\x80\x80\x80");
    }
    std::string filler;
    while (filler.size() < 5000) filler += "ab 'll 123\n\n  \xe4\xb8\xad!!/\n";
    std::vector<size_t> sizes;
    for (size_t size = 0; size <= 70; size += size < 20 || size > 60 ? 1 : 8) sizes.push_back(size);
    for (size_t size = 4093; size <= 4097; ++size) sizes.push_back(size);
    for (const pretokenizer::PatternInfo& info : pretokenizer::patterns()) {
        const bpe::Vocabulary vocabulary = bytes_alone(info.pattern);
        bpe::Encoder encoder(vocabulary);
        for (const size_t size : sizes) {
            for (const std::string& tail : tails) test_text(vocabulary, encoder, filler.substr(0, size) + tail);
        }
    }
}

void test_random_texts() {
    std::mt19937 random(1);
    for (const pretokenizer::PatternInfo& info : pretokenizer::patterns()) {
        const bpe::Vocabulary vocabulary = bytes_alone(info.pattern);
        bpe::Encoder encoder(vocabulary);
        for (int round = 0; round < 300; ++round) {
            test_text(vocabulary, encoder, testing::random_text(random, round % 10 == 0 ? 5000 : 100));
        }
    }
}

void test_names() {
    for (const pretokenizer::PatternInfo& info : pretokenizer::patterns()) {
        CHECK(&pretokenizer::info(info.pattern) == &info);
        CHECK(pretokenizer::pattern_from_name(info.name) == info.pattern);
    }
    for (const auto& [alias, pattern] : pretokenizer::aliases()) {
        CHECK(pretokenizer::pattern_from_name(alias) == pattern);
    }
    CHECK(!pretokenizer::pattern_from_name("gpt-4"));
}

}  // namespace
}  // namespace fastcompress

int main() {
    fastcompress::test_ends_of_buffers();
    fastcompress::test_random_texts();
    fastcompress::test_names();
    return fastcompress::testing::report();
}
