// The BPE core on random vocabularies and random bytes: both merge algorithms against a plain one, round trips, thread
// counts, and damaged files. (The Python tests compare with tiktoken and with an oracle trainer.)
#include <algorithm>

#include "check.h"
#include "fastcompress/bpe/encode/batch_encoder.h"
#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/bpe/train/trainer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {
namespace {

using pretokenizer::Pattern;
using testing::random_text;

Vocabulary train(std::span<const std::string> texts, Pattern pattern, size_t num_merges) {
    PretokenCounts counts;
    for (const std::string& text : texts) counts.add_text(as_bytes(text), pattern);
    TrainerSettings settings;
    settings.pattern = pattern;
    settings.vocab_size = 256 + num_merges + 1;
    settings.special_tokens = {"<|end|>"};
    const std::unique_ptr<Trainer> trainer = std::move(*Trainer::make(std::move(settings)));
    counts.for_each([&](const PretokenCounts::Entry& entry) { CHECK(trainer->add(entry.pretoken, entry.count).ok()); });
    return std::move(*Vocabulary::make(std::move(*trainer->train([](size_t, size_t) {}))));
}

std::vector<std::string> byte_tokens() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return tokens;
}

std::vector<std::string> random_texts(std::mt19937& random, size_t count, size_t max_pieces) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.push_back(random_text(random, max_pieces));
    return texts;
}

// The definition, word for word: while some adjacent pair merges, merge the leftmost one of lowest rank.
std::vector<TokenId> merge_plainly(const Vocabulary& vocabulary, Bytes pretoken) {
    std::vector<TokenId> ids;
    for (const uint8_t byte : pretoken) ids.push_back(vocabulary.byte_token(byte));
    for (;;) {
        size_t best = 0;
        uint32_t lowest = kNoRank;
        for (size_t i = 0; i + 1 < ids.size(); ++i) {
            const uint32_t rank = vocabulary.find_rank(ids[i], ids[i + 1]);
            if (rank < lowest) {
                lowest = rank;
                best = i;
            }
        }
        if (lowest == kNoRank) return ids;
        ids[best] = vocabulary.merge_result(lowest);
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
}

void test_encoding() {
    std::mt19937 random(1);
    for (const pretokenizer::PatternInfo& info : pretokenizer::patterns()) {
        const Pattern pattern = info.pattern;
        const std::vector<std::string> texts = random_texts(random, 200, 60);
        const Vocabulary vocabulary = train(texts, pattern, 150);
        Encoder encoder(vocabulary);
        for (const std::string& text : random_texts(random, 300, 200)) {
            std::vector<TokenId> expected;
            std::string joined;
            pretokenizer::for_each_pretoken(pattern, as_bytes(text), [&](Bytes pretoken) {
                CHECK(!pretoken.empty());
                joined += as_chars(pretoken);
                const std::vector<TokenId> ids = merge_plainly(vocabulary, pretoken);
                expected.insert(expected.end(), ids.begin(), ids.end());
            });
            CHECK(joined == text);
            TokenBuffer ids;
            encoder.encode(as_bytes(text), ids);
            CHECK(std::ranges::equal(ids.tokens(), expected));
            CHECK(as_chars(*decode(vocabulary, ids.tokens())) == text);
        }
    }
}

// Vocabularies of the other kind, in ranks' order, whose longer tokens may well come before the tokens they are made of.
void test_ranks() {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        std::vector<std::string> words;
        for (size_t length = 2; length <= 6; ++length) {
            for (size_t bits = 0; bits < size_t{1} << length; ++bits) {
                std::string word;
                for (size_t i = 0; i < length; ++i) word += bits >> i & 1 ? 'b' : 'a';
                if (random() % 4 == 0) words.push_back(word);
            }
        }
        std::ranges::shuffle(words, random);
        VocabularySpec spec;
        spec.order = MergeOrder::kRanks;
        spec.pattern = Pattern::kNone;
        spec.tokens = byte_tokens();
        spec.tokens.insert(spec.tokens.end(), words.begin(), words.end());
        const Vocabulary vocabulary = std::move(*Vocabulary::make(std::move(spec)));
        Encoder encoder(vocabulary);
        for (const size_t size : {1, 2, 5, 15, 16, 40, 96, 97, 300, 1000}) {
            std::string text;
            while (text.size() < size) text += random() % 2 ? 'a' : 'b';
            std::vector<TokenId> expected = {vocabulary.whole_pretoken(as_bytes(text))};
            if (expected[0] == kNoToken) expected = merge_plainly(vocabulary, as_bytes(text));
            for (int pass = 0; pass < 2; ++pass) {  // the second from a cache
                TokenBuffer ids;
                encoder.encode(as_bytes(text), ids);
                CHECK(std::ranges::equal(ids.tokens(), expected));
            }
        }
    }
}

// More distinct pretokens than the caches hold at first, and than they hold at most.
void test_caches_that_grow_and_forget() {
    const std::string corpus = "a few words to learn some merges from, and a few more words to learn from";
    const Vocabulary vocabulary = train(std::span(&corpus, 1), Pattern::kWhitespace, 40);
    Encoder encoder(vocabulary);
    for (int pass = 0; pass < 2; ++pass) {
        std::mt19937 random(6);
        for (int i = 0; i < 400; ++i) {
            std::string text;
            for (int k = 0; k < 1000; ++k) {
                for (size_t n = random() % (k % 100 == 0 ? 40 : 12) + 1; n > 0; --n)
                    text += "words afew"[random() % 10];
                text += ' ';
            }
            TokenBuffer ids;
            encoder.encode(as_bytes(text), ids);
            CHECK(as_chars(*decode(vocabulary, ids.tokens())) == text);
            if (i % 40 != 0) continue;
            std::vector<TokenId> expected;
            pretokenizer::for_each_pretoken(Pattern::kWhitespace, as_bytes(text), [&](Bytes pretoken) {
                const std::vector<TokenId> merged = merge_plainly(vocabulary, pretoken);
                expected.insert(expected.end(), merged.begin(), merged.end());
            });
            CHECK(std::ranges::equal(ids.tokens(), expected));
        }
    }
}

void test_batches() {
    std::mt19937 random(2);
    const std::vector<std::string> texts = random_texts(random, 3000, 400);  // enough for several threads
    const Vocabulary vocabulary = train(texts, Pattern::kCl100k, 100);
    std::vector<unicode::StoredText> bytes;
    for (const std::string& text : texts) bytes.emplace_back(as_bytes(text));
    EncoderPool pool(vocabulary);
    std::string long_text;  // which is cut
    for (const std::string& text : texts) long_text += text;
    bytes.insert(bytes.begin() + 7, unicode::StoredText(as_bytes(long_text)));
    bytes.insert(bytes.begin() + 7, unicode::StoredText());
    TextMethod method{[](Encoder& encoder, std::span<const Bytes> parts, TokenBuffer& out, uint64_t* ends) {
        encoder.encode(parts, out, ends);
    }};
    const EncodedBatch one = encode_batch(pool, bytes, 1, method);
    for (const bool may_cut : {false, true}) {
        method.may_cut = may_cut;
        for (const size_t num_threads : {2, 3, 8, 1000}) {
            const EncodedBatch several = encode_batch(pool, bytes, num_threads, method);
            CHECK(std::ranges::equal(several.tokens.tokens(), one.tokens.tokens()) && several.offsets == one.offsets);
        }
        CHECK_EQ(encode_batch(pool, {}, 4, method).offsets.size(), 1u);
    }
    Encoder encoder(vocabulary);
    for (size_t i = 0; i < bytes.size(); ++i) {
        TokenBuffer ids;
        encoder.encode(bytes[i].memory, ids);
        CHECK(std::ranges::equal(ids.tokens(),
                                 one.tokens.tokens().subspan(one.offsets[i], one.offsets[i + 1] - one.offsets[i])));
    }
}

void test_training_is_independent_of_threads_and_order() {
    std::mt19937 random(3);
    std::vector<std::string> texts = random_texts(random, 200, 60);
    const std::vector<uint8_t> first = train(texts, Pattern::kCl100k, 200).serialize();
    std::ranges::shuffle(texts, random);
    CHECK(train(texts, Pattern::kCl100k, 200).serialize() == first);
}

void test_damaged_files() {
    std::mt19937 random(4);
    const std::vector<std::string> texts = random_texts(random, 100, 60);
    const std::vector<uint8_t> blob = train(texts, Pattern::kO200k, 60).serialize();
    CHECK(Vocabulary::parse(blob).ok());
    CHECK((*Vocabulary::parse(blob)).serialize() == blob);
    for (size_t size = 0; size < blob.size(); size += 1 + size / 50) {
        CHECK(!Vocabulary::parse(Bytes(blob).first(size)).ok());
    }
    for (int i = 0; i < 2000; ++i) {
        std::vector<uint8_t> damaged = blob;
        damaged[random() % blob.size()] ^= static_cast<uint8_t>(1 + random() % 255);
        CHECK(!Vocabulary::parse(damaged).ok());
    }
}

void test_refused_vocabularies() {
    const auto refused = [](auto change) {
        VocabularySpec spec;
        spec.tokens = byte_tokens();
        spec.tokens.push_back("ab");
        spec.merges = {{'a', 'b', 256}};
        CHECK(Vocabulary::make(spec).ok());
        change(spec);
        return !Vocabulary::make(std::move(spec)).ok();
    };
    CHECK(refused([](VocabularySpec& spec) { spec.tokens[65].clear(); }));                      // a byte is missing
    CHECK(refused([](VocabularySpec& spec) { spec.merges[0].right = 'c'; }));                   // does not spell "ab"
    CHECK(refused([](VocabularySpec& spec) { spec.merges[0].result = 300; }));                  // no such token
    CHECK(refused([](VocabularySpec& spec) { spec.merges.push_back(spec.merges[0]); }));        // twice
    CHECK(refused([](VocabularySpec& spec) { spec.added_tokens = {{"<|x|>", 256}}; }));         // the id is taken
    CHECK(refused([](VocabularySpec& spec) { spec.added_tokens = {{"", 257}}; }));              // no text
    CHECK(refused([](VocabularySpec& spec) { spec.added_tokens = {{"<|x|>", 0xffffffff}}; }));  // too many ids
    CHECK(refused([](VocabularySpec& spec) { spec.order = MergeOrder::kRanks; }));              // ranks with merges
    CHECK(refused([](VocabularySpec& spec) {
        spec.order = MergeOrder::kRanks;
        spec.merges.clear();
        spec.tokens.push_back(std::string(kMaxRankTokenBytes + 1, 'x'));
    }));
}

}  // namespace
}  // namespace fastcompress::bpe

int main(int argc, char** argv) {
    fastcompress::bpe::test_batches();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    fastcompress::bpe::test_encoding();
    fastcompress::bpe::test_ranks();
    fastcompress::bpe::test_caches_that_grow_and_forget();
    fastcompress::bpe::test_training_is_independent_of_threads_and_order();
    fastcompress::bpe::test_damaged_files();
    fastcompress::bpe::test_refused_vocabularies();
    return fastcompress::testing::report();
}
