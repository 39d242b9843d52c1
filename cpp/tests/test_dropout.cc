// BPE-dropout: its two ways to merge give the same ids, batches do not depend on threads, and the bytes come back.
// (tests/test_bpe_dropout.py compares it with its rule.)
#include <algorithm>

#include "check.h"
#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/dropout.h"
#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/bpe/train/trainer.h"

namespace fastcompress::bpe {
namespace {

Vocabulary train(const std::string& text) {
    PretokenCounts counts;
    counts.add_text(as_bytes(text), pretokenizer::Pattern::kGpt2);
    TrainerSettings settings;
    settings.pattern = pretokenizer::Pattern::kGpt2;
    settings.vocab_size = 456;
    const std::unique_ptr<Trainer> trainer = std::move(*Trainer::make(std::move(settings)));
    counts.for_each([&](const PretokenCounts::Entry& entry) { CHECK(trainer->add(entry.pretoken, entry.count).ok()); });
    return std::move(*Vocabulary::make(std::move(*trainer->train([](size_t, size_t) {}))));
}

void test_both_ways_to_merge() {
    std::mt19937 random(1);
    std::string corpus;
    for (int i = 0; i < 200; ++i) corpus += testing::random_text(random, 30);
    const Vocabulary vocabulary = train(corpus);
    for (const double dropout : {0.0, 1e-300, 0.1, 0.5, 0.99, 1.0}) {
        DropoutEncoder encoder(vocabulary, dropout);
        for (uint64_t round = 0; round < 300; ++round) {
            std::string pretoken = "x" + testing::random_text(random, 30);
            pretoken.resize(std::min(pretoken.size(), DropoutEncoder::kMaxScanBytes));
            TokenBuffer by_scan, by_order;
            encoder.merge_by_scan(as_bytes(pretoken), round, by_scan);
            encoder.merge_by_order(as_bytes(pretoken), round, by_order);
            CHECK(std::ranges::equal(by_scan.tokens(), by_order.tokens()));
            CHECK(as_chars(*decode(vocabulary, by_scan.tokens())) == pretoken);
        }
    }
}

void test_batches() {
    std::mt19937 random(2);
    std::vector<std::string> texts;
    std::string corpus;
    for (int i = 0; i < 100; ++i) {
        texts.push_back(testing::random_text(random, 60));
        corpus += texts.back();
    }
    const Vocabulary vocabulary = train(corpus);
    std::vector<DropoutText> batch;
    for (size_t i = 0; i < texts.size(); ++i) batch.push_back({as_bytes(texts[i]), i % 3, i % 7});
    const EncodedBatch expected = encode_batch_with_dropout(vocabulary, batch, 0.2, 1);
    for (size_t i = 0; i < texts.size(); ++i) {
        const auto ids =
            expected.tokens.tokens().subspan(expected.offsets[i], expected.offsets[i + 1] - expected.offsets[i]);
        CHECK(as_chars(*decode(vocabulary, ids)) == texts[i]);
    }
    for (const size_t num_threads : {2, 5, 200}) {
        const EncodedBatch found = encode_batch_with_dropout(vocabulary, batch, 0.2, num_threads);
        CHECK(std::ranges::equal(found.tokens.tokens(), expected.tokens.tokens()));
        CHECK(found.offsets == expected.offsets);
    }
    CHECK(encode_batch_with_dropout(vocabulary, {}, 0.2, 4).offsets == std::vector<uint64_t>{0});
}

}  // namespace
}  // namespace fastcompress::bpe

int main() {
    fastcompress::bpe::test_both_ways_to_merge();
    fastcompress::bpe::test_batches();
    return fastcompress::testing::report();
}
