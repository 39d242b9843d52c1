// Memory that runs out, at every allocation of sessions with BPE, pretokenizers and normalization: everything is as it was
// before the call that failed. (Other parts: test_allocation.cc.)
#include <filesystem>
#include <memory>

#include "failing_allocator.h"
#include "fastcompress/bpe/encode/batch_encoder.h"
#include "fastcompress/bpe/encode/canonical_pairs.h"
#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/dropout.h"
#include "fastcompress/bpe/encode/text_encoder.h"
#include "fastcompress/bpe/train/pretoken_counter.h"
#include "fastcompress/bpe/train/trainer.h"
#include "fastcompress/unicode/nfc.h"

namespace fastcompress {
namespace {

using bpe::PretokenCounter;
using bpe::PretokenCounts;
using bpe::TokenBuffer;
using pretokenizer::Pattern;
using testing::bytes_of_numbers;
using testing::Session;
using testing::walk_outcome;
using testing::wordy_text;
using ByteVector = std::vector<uint8_t>;
using Entries = std::vector<std::pair<std::string, uint64_t>>;

constexpr Pattern kPattern = Pattern::kCl100k;

// --- Counts ---

struct Table {
    PretokenCounts counts;
    Entries observe() const {
        Entries entries;
        for (const auto& entry : counts.sorted()) entries.emplace_back(as_chars(entry.pretoken), entry.count);
        entries.emplace_back("", counts.size());
        return entries;
    }
};

// Words of which nearly none comes twice, short and long.
std::string rare_text(unsigned seed, size_t num_words) {
    std::mt19937 random(seed);
    std::string text;
    for (size_t i = 0; i < num_words; ++i) {
        text += ' ';
        for (size_t k = random() % 9 == 0 ? 30 : 1 + random() % 8; k > 0; --k) {
            text += static_cast<char>('a' + random() % 26);
        }
    }
    return text;
}

void test_counts() {
    const std::string text = rare_text(1, 2000);
    const std::string other = rare_text(2, 3000) + wordy_text(2, 500);
    PretokenCounts more;
    more.add_text(as_bytes(other), kPattern);
    more.add_text(as_bytes(text), kPattern);
    Session<Table>{"PretokenCounts",
                   [] { return Table(); },
                   {[&](Table& to) { to.counts.add_text(as_bytes(text), kPattern); },
                    [&](Table& to) { to.counts.add_text(as_bytes(other), kPattern); },
                    [](Table& to) { to.counts.add(as_bytes("once"), 7); },
                    [](Table& to) { to.counts.add(as_bytes("a pretoken that is longer"), 7); },
                    [&](Table& to) { to.counts.add(more); }}}
        .walk();
    // What is subtracted is as if it had never been there.
    Table table;
    table.counts.add_text(as_bytes(text), kPattern);
    const Entries before = table.observe();
    table.counts.add_text(as_bytes(other), kPattern);
    table.counts.subtract_text(as_bytes(other), kPattern);
    CHECK(table.observe() == before);
    PretokenCounts moved = std::move(table.counts);
    CHECK(table.counts.size() == 0 && table.observe().size() == 1);  // NOLINT: a moved-from table is empty
    table.counts.add_text(as_bytes(text), kPattern);
    CHECK(table.observe() == before);
}

PretokenCounter::Settings in_memory() {
    PretokenCounter::Settings settings;
    settings.pattern = kPattern;
    return settings;
}

struct Counting {
    std::unique_ptr<PretokenCounter> counter;
    Entries observe() const {
        Entries entries;
        const auto sorted = counter->sorted();
        while (const auto entry = sorted->next()) entries.emplace_back(as_chars(entry->pretoken), entry->count);
        CHECK(sorted->status().ok());
        return entries;
    }
};

void test_counter(size_t num_threads) {
    const std::string one = rare_text(3, 1500);
    const std::string two = wordy_text(3, 1000);
    const std::string three = rare_text(4, 1500);
    const std::vector<Bytes> texts = {as_bytes(one), as_bytes(two), as_bytes(three)};
    PretokenCounter other(in_memory());
    CHECK(other.add_texts(texts, 1).ok());
    const auto add_texts = [&](Counting& to) { CHECK(to.counter->add_texts(texts, num_threads).ok()); };
    Session<Counting>{"PretokenCounter",
                      [] { return Counting{std::make_unique<PretokenCounter>(in_memory())}; },
                      {add_texts, [](Counting& to) { CHECK(to.counter->size().ok()); }, add_texts,
                       [&](Counting& to) { CHECK(to.counter->add(other).ok()); }, add_texts}}
        .walk();
}

// With counts on disk, a failure while texts are counted may leave the counter of no more use, which it then says; never
// with wrong counts.
void test_spilled_counts(size_t num_threads) {
    const std::string folder = std::filesystem::temp_directory_path() / "fastcompress_test_allocation";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string one = rare_text(5, 4000);
    const std::string two = rare_text(6, 4000);
    const std::vector<Bytes> texts = {as_bytes(one), as_bytes(two)};
    const auto observe = [](PretokenCounter& counter) {
        Entries entries;
        const auto sorted = counter.sorted();
        while (const auto entry = sorted->next()) entries.emplace_back(as_chars(entry->pretoken), entry->count);
        return sorted->status().ok() ? entries : Entries();
    };
    const auto expected = [&](int num_times) {
        PretokenCounter counter(in_memory());
        for (int i = 0; i < num_times; ++i) CHECK(counter.add_texts(texts, 1).ok());
        return observe(counter);
    };
    const Entries once = expected(1), twice = expected(2), thrice = expected(3);
    size_t num_refused = 0, num_kept = 0;
    for (uint64_t index = 0;; index += index < 30 ? 1 : 1 + index / 8) {
        PretokenCounter counter({kPattern, 100000, folder});
        CHECK(counter.add_texts(texts, num_threads).ok());
        CHECK(counter.num_runs() > 0);
        bool ran_out = false;
        testing::FailingAllocator::arm(index, testing::FailureMode::kOne);
        try {
            CHECK(counter.add_texts(texts, num_threads).ok());
        } catch (const std::bad_alloc&) {
            ran_out = true;
        }
        const bool has_failed = testing::FailingAllocator::disarm();
        if (!ran_out) {
            CHECK(observe(counter) == twice);
            if (!has_failed) break;
            continue;
        }
        const Status status = counter.add_texts(texts, num_threads);
        num_refused += !status.ok();
        num_kept += status.ok();
        CHECK(status.ok() ? observe(counter) == twice : !counter.size().ok() && !counter.sorted()->status().ok());
    }
    CHECK(num_refused > 0 && num_kept > 0);

    // Entries of another counter are added whole or not at all, and their files go.
    PretokenCounter other(in_memory());
    CHECK(other.add_texts(texts, 1).ok());
    size_t num_files = 0;
    for (uint64_t index = 0;; index += index < 30 ? 1 : 1 + index / 4) {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
        PretokenCounter counter({kPattern, 200000, folder});
        CHECK(counter.add_texts(texts, num_threads).ok() && counter.add_texts(texts, num_threads).ok());
        testing::FailingAllocator::arm(index, testing::FailureMode::kOne);
        bool ran_out = false;
        try {
            CHECK(counter.add(other).ok());
        } catch (const std::bad_alloc&) {
            ran_out = true;
        }
        const bool has_failed = testing::FailingAllocator::disarm();
        for (const auto& file : std::filesystem::directory_iterator(folder)) num_files += file.exists();
        CHECK_EQ(num_files, counter.num_runs());
        num_files = 0;
        CHECK(observe(counter) == (ran_out ? twice : thrice));
        if (ran_out) CHECK(counter.add(other).ok() && observe(counter) == thrice);
        if (!has_failed) break;
    }
    std::filesystem::remove_all(folder);
}

// --- Training and vocabularies ---

bpe::VocabularySpec trained(bpe::TieBreak tie_break, uint32_t vocab_size = 600) {
    PretokenCounts counts;
    counts.add_text(as_bytes(wordy_text(7, 3000)), kPattern);
    bpe::TrainerSettings settings;
    settings.tie_break = tie_break;
    settings.vocab_size = vocab_size;
    settings.special_tokens = {"<|end|>", "<|pad|>"};
    auto trainer = std::move(*bpe::Trainer::make(settings));
    for (const auto& entry : counts.sorted()) CHECK(trainer->add(entry.pretoken, entry.count).ok());
    return *trainer->train([](size_t, size_t) {});
}

struct Training {
    std::unique_ptr<bpe::Trainer> trainer;
    ByteVector vocabulary;
    const ByteVector& observe() const { return vocabulary; }
};

void test_trainer(bpe::TieBreak tie_break) {
    walk_outcome(
        "Trainer", [&] { return bpe::Vocabulary::make(trained(tie_break))->serialize(); }, 20);

    // A failed add() adds nothing: what is trained afterwards shows it.
    const Entries pretokens = {{" a pretoken", 3}, {"token", 9}, {"x", 1}, {" to", 5}, {"!!!!!!!!!!!!", 2}};
    bpe::TrainerSettings settings;
    settings.tie_break = tie_break;
    settings.vocab_size = 270;
    Session<Training> session{"Trainer::add",
                              [&] {
                                  return Training{std::move(*bpe::Trainer::make(settings)), ByteVector()};
                              },
                              {}};
    for (const auto& [pretoken, count] : pretokens) {
        session.steps.push_back(
            [bytes = as_bytes(pretoken), count = count](Training& to) { CHECK(to.trainer->add(bytes, count).ok()); });
    }
    session.steps.push_back([&](Training& to) {
        testing::FailingAllocator::disarm();  // a train() that failed could not be called again
        const auto spec = to.trainer->train([](size_t, size_t) {});
        CHECK(spec.ok());
        to.vocabulary = bpe::Vocabulary::make(*spec)->serialize();
        CHECK(!to.trainer->train([](size_t, size_t) {}).ok());
        CHECK(!to.trainer->add(as_bytes("more"), 1).ok());
    });
    session.walk();
}

void test_vocabulary(const bpe::Vocabulary& vocabulary) {
    const ByteVector file = vocabulary.serialize();
    walk_outcome("Vocabulary::parse", [&] { return bpe::Vocabulary::parse(file)->serialize(); });
    walk_outcome("Vocabulary::make", [&] { return bpe::Vocabulary::make(vocabulary.spec())->serialize(); });
}

// --- Encoding ---

struct Encoding {
    std::unique_ptr<bpe::Encoder> encoder;
    std::unique_ptr<bpe::DropoutEncoder> dropout;
    TokenBuffer out;
    std::vector<uint64_t> ends = std::vector<uint64_t>(3);
    ByteVector observe() const { return bytes_of_numbers(out.tokens()); }
};

void test_encoder(const bpe::Vocabulary& vocabulary) {
    const std::string text = wordy_text(8, 3000) + rare_text(8, 3000);
    const std::string other = rare_text(9, 500) + std::string(5000, 'a') + std::string(300, '\xff');
    const std::string special = "a<|end|>b c" + text.substr(0, 500) + "<|pad|>";
    const std::vector<Bytes> texts = {as_bytes(other), as_bytes(""), as_bytes(text)};
    const bpe::TextEncoder text_encoder(vocabulary);
    const std::vector<uint8_t> allowed(vocabulary.added_tokens().size(), 1);
    Session<Encoding>{
        "Encoder",
        [&] {
            return Encoding{
                std::make_unique<bpe::Encoder>(vocabulary), std::make_unique<bpe::DropoutEncoder>(vocabulary, 0.1), {}};
        },
        {[&](Encoding& to) { to.encoder->encode(as_bytes(text), to.out); },
         [&](Encoding& to) { to.encoder->encode_pretoken(as_bytes(" unheardofandlongenough"), to.out); },
         [&](Encoding& to) { to.encoder->encode_by_merges(as_bytes(std::string_view(text).substr(0, 40)), to.out); },
         [&](Encoding& to) {
             to.encoder->encode_pretoken(as_bytes(std::string_view(other).substr(100, 1500)), to.out);
         },
         [&](Encoding& to) { to.encoder->encode(texts, to.out, to.ends.data()); },
         [&](Encoding& to) { to.encoder->reserve_large_cache(); },
         [&](Encoding& to) { to.encoder->encode(texts, to.out, to.ends.data()); },
         [&](Encoding& to) {
             text_encoder.encode(as_bytes(special), text_encoder.treatments(allowed), *to.encoder, to.out);
         },
         [&](Encoding& to) {
             to.dropout->encode({as_bytes(other), 1, 0}, to.out);
         },
         [&](Encoding& to) {
             to.dropout->encode({as_bytes(text), 2, 0}, to.out);
         }},
        40}
        .walk();

    Encoding encoded{std::make_unique<bpe::Encoder>(vocabulary), nullptr, {}};
    encoded.encoder->encode(as_bytes(text), encoded.out);
    walk_outcome("decode", [&] { return *bpe::decode(vocabulary, encoded.out.tokens()); });
}

struct Pool {
    std::unique_ptr<bpe::EncoderPool> pool;
    ByteVector ids;
    const ByteVector& observe() const { return ids; }
};

void test_encode_batch(const bpe::Vocabulary& vocabulary, size_t num_threads) {
    const std::string one = wordy_text(10, 3000);
    const std::string two = rare_text(11, 2000);
    std::vector<unicode::StoredText> texts;
    std::vector<bpe::DropoutText> dropout_texts;
    for (int i = 0; i < 4; ++i) {
        const Bytes text = as_bytes(i % 2 == 0 ? one : two);
        texts.emplace_back(text);
        dropout_texts.push_back({text, 5, 0, {}});
    }
    const bpe::TextMethod method{[](bpe::Encoder& encoder, std::span<const Bytes> some, TokenBuffer& out,
                                    uint64_t* ends) { encoder.encode(some, out, ends); },
                                 true};
    const auto encode = [&](Pool& to) {
        const bpe::EncodedBatch batch = bpe::encode_batch(*to.pool, texts, num_threads, method);
        to.ids = bytes_of_numbers(batch.tokens.tokens());
    };
    Session<Pool>{"encode_batch",
                  [&] {
                      return Pool{std::make_unique<bpe::EncoderPool>(vocabulary), ByteVector()};
                  },
                  {encode, encode}}
        .walk();
    // All pairs of tokens are merged, so there are few.
    const bpe::Vocabulary small = std::move(*bpe::Vocabulary::make(trained(bpe::TieBreak::kLowestId, 264)));
    walk_outcome(
        "canonical_pairs",
        [&] {
            std::vector<uint8_t> rows(small.size() * bpe::pair_row_bytes(small));
            CHECK(bpe::canonical_pairs(small, num_threads, rows).ok());
            return rows;
        },
        3);
    walk_outcome("encode_batch_with_dropout", [&] {
        const auto batch = bpe::encode_batch_with_dropout(vocabulary, dropout_texts, 0.2, num_threads);
        return bytes_of_numbers(batch.tokens.tokens());
    });
}

void test_pretokenizer_and_nfc() {
    const std::string text = wordy_text(12, 300);
    std::string decomposed;
    for (int i = 0; i < 50; ++i) decomposed += "e\xcc\x81 o\xcc\x88\xcc\xa3 \xe1\x84\x80\xe1\x85\xa1 plain ";
    Session<testing::Outcome>{
        "pretokenizer and NFC",
        [] {
            return testing::Outcome{{1, 2, 3}};
        },
        {[&](testing::Outcome& out) {
             ByteVector sizes;
             pretokenizer::for_each_pretoken(kPattern, as_bytes(text), [&](Bytes pretoken) {
                 sizes.push_back(static_cast<uint8_t>(pretoken.size()));
             });
             out.bytes = std::move(sizes);
         },
         [&](testing::Outcome& out) { CHECK(unicode::normalize_nfc(as_bytes(decomposed), out.bytes)); }}}
        .walk();
}

}  // namespace
}  // namespace fastcompress

int main() {
    using namespace fastcompress;
    test_counts();
    for (const size_t num_threads : {1u, 2u}) {
        test_counter(num_threads);
        test_spilled_counts(num_threads);
    }
    test_pretokenizer_and_nfc();
    for (const auto tie_break : {bpe::TieBreak::kLowestId, bpe::TieBreak::kHuggingFace}) test_trainer(tie_break);
    const bpe::Vocabulary vocabulary = std::move(*bpe::Vocabulary::make(trained(bpe::TieBreak::kLowestId)));
    test_vocabulary(vocabulary);
    test_encoder(vocabulary);
    for (const size_t num_threads : {1u, 2u}) test_encode_batch(vocabulary, num_threads);
    return testing::report();
}
