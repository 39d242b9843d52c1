// Training and counting: the merge loop against its definition, thresholds, long pretokens, counts that are cut, spilled,
// written and damaged. (The Python tests compare with the oracles and with other trainers.)
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "check.h"
#include "fastcompress/bpe/train/counts_file.h"
#include "fastcompress/bpe/train/merge_loop.h"
#include "fastcompress/bpe/train/pretoken_counter.h"
#include "fastcompress/bpe/train/trainer.h"

namespace fastcompress::bpe {
namespace {

using pretokenizer::Pattern;
using testing::random_text;

using Words = std::map<std::vector<TokenId>, int64_t>;

std::vector<TokenId> merge_in(const std::vector<TokenId>& word, Pair pair, TokenId result) {
    std::vector<TokenId> merged;
    for (size_t i = 0; i < word.size(); ++i) {
        if (i + 1 < word.size() && make_pair(word[i], word[i + 1]) == pair) {
            merged.push_back(result);
            ++i;
        } else {
            merged.push_back(word[i]);
        }
    }
    return merged;
}

// The definition: count every pair, merge the first of the most frequent, from left to right.
std::vector<Pair> merges_by_definition(Words words, size_t num_merges) {
    std::vector<Pair> merges;
    while (merges.size() < num_merges) {
        std::map<Pair, int64_t> counts;
        for (const auto& [word, count] : words) {
            for (size_t i = 0; i + 1 < word.size(); ++i) counts[make_pair(word[i], word[i + 1])] += count;
        }
        const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
        if (most == counts.end()) break;
        merges.push_back(most->first);
        Words merged;
        for (const auto& [word, count] : words)
            merged[merge_in(word, merges.back(), static_cast<TokenId>(255 + merges.size()))] += count;
        words = std::move(merged);
    }
    return merges;
}

SymbolArray array_of(const Words& words) {
    SymbolArray symbols(std::vector<uint32_t>(256, 1));
    for (const auto& [word, count] : words) CHECK(symbols.add_pretoken(word, count));
    symbols.finish();
    return symbols;
}

std::vector<Pair> merges_by_loop(const Words& words, size_t num_merges, size_t expected_merges) {
    MergeLoop loop(array_of(words), MergeRules(), expected_merges);
    std::vector<Pair> merges;
    while (merges.size() < num_merges) {
        const auto candidate = loop.pop_most_frequent();
        if (!candidate) break;
        merges.push_back(candidate->pair);
        loop.merge(*candidate, static_cast<TokenId>(255 + merges.size()));
    }
    return merges;
}

// Also with first thresholds that are much too high, so that pairs are counted anew several times.
void test_merge_loop() {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        Words words;
        const size_t num_letters = 1 + random() % 6;
        const size_t max_length = round % 3 == 0 ? 300 : 12;
        for (size_t n = 1 + random() % 30; n > 0; --n) {
            std::vector<TokenId> word(1 + random() % max_length);
            for (TokenId& symbol : word) symbol = 'a' + static_cast<TokenId>(random() % num_letters);
            words[word] += 1 + static_cast<int64_t>(random() % 3 == 0 ? random() % 1000 : random() % 4);
        }
        const size_t num_merges = random() % 80;
        const std::vector<Pair> expected = merges_by_definition(words, num_merges);
        for (const size_t expected_merges : {size_t{1}, size_t{5}, num_merges, size_t{1} << 40})
            CHECK(merges_by_loop(words, num_merges, expected_merges) == expected);
    }
}

// Of one letter, and of many: what is quadratic takes hours. Enough positions for those of no use to be dropped.
void test_huge_pretokens() {
    std::mt19937 random(2);
    for (const size_t num_letters : {1, 2, 4, 20}) {
        std::vector<TokenId> word(800'000);
        for (TokenId& symbol : word) symbol = 'a' + static_cast<TokenId>(random() % num_letters);
        const std::vector<Pair> merges = merges_by_loop({{word, 3}}, 300, 300);
        CHECK(num_letters == 1 ? merges.size() < 40 : merges.size() == 300);
        const Words few = {{{word.begin(), word.begin() + 30'000}, 3}};
        CHECK(merges_by_loop(few, 15, 1) == merges_by_definition(few, 15));
    }
}

void test_pretokens_of_positions() {
    std::mt19937 random(3);
    Words words;
    for (int n = 0; n < 300; ++n) {
        std::vector<TokenId> word(2 + random() % (n % 10 == 0 ? 400 : 9));
        for (TokenId& symbol : word) symbol = 'a' + static_cast<TokenId>(random() % 2);
        words[word] += 1 + n;
    }
    SymbolArray symbols = array_of(words);
    symbols.add_symbol(2);
    std::vector<SymbolArray::Position> positions;
    const auto check_counts = [&] {
        symbols.for_each_pair([&](SymbolArray::Position p, TokenId left, TokenId right, int64_t count) {
            CHECK_EQ(symbols.count_at(p), count);
            CHECK(symbols.is_at(p, left, right));
            if (left == 'a' && right == 'b') positions.push_back(p);
        });
    };
    check_counts();
    for (const SymbolArray::Position p : positions) symbols.merge(p, p + 1, 1, 256);
    for (const SymbolArray::Position p : positions) CHECK(!symbols.is_at(p, 'a', 'b'));
    check_counts();
}

std::map<std::string, uint64_t> plain_counts(std::span<const std::string> texts, Pattern pattern) {
    std::map<std::string, uint64_t> counts;
    for (const std::string& text : texts) {
        pretokenizer::for_each_pretoken(pattern, as_bytes(text),
                                        [&](Bytes pretoken) { ++counts[std::string(as_chars(pretoken))]; });
    }
    return counts;
}

std::map<std::string, uint64_t> contents(SortedCounts& entries) {
    std::map<std::string, uint64_t> counts;
    while (const auto entry = entries.next()) counts.emplace(as_chars(entry->pretoken), entry->count);
    CHECK(entries.status().ok());
    return counts;
}

class TemporaryFolder {
  public:
    TemporaryFolder()
        : path_(std::filesystem::temp_directory_path() /
                ("fastcompress-test-" + std::to_string(std::random_device()()))) {
        std::filesystem::create_directory(path_);
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

void test_counting() {
    std::mt19937 random(4);
    std::vector<std::string> texts;
    for (int i = 0; i < 200; ++i) texts.push_back(random_text(random, 200));
    std::string long_text;  // enough to be cut for threads
    while (long_text.size() < 1'300'000) long_text += random_text(random, 20) + "word" + std::to_string(random() % 99);
    texts.push_back(long_text);
    std::vector<Bytes> bytes;
    for (const std::string& text : texts) bytes.push_back(as_bytes(text));
    for (const Pattern pattern : {Pattern::kCl100k, Pattern::kO200k, Pattern::kNone}) {
        const std::map<std::string, uint64_t> expected = plain_counts(texts, pattern);
        for (const size_t num_threads : {1, 2, 5}) {
            for (const size_t cap : {size_t{1}, size_t{100'000}, ~size_t{0}}) {
                const TemporaryFolder folder;
                PretokenCounter counter({pattern, cap, folder.path()});
                CHECK(counter.add_texts(std::span(bytes).first(50), num_threads).ok());
                CHECK(counter.add_texts(std::span(bytes).subspan(50), num_threads).ok());
                CHECK(contents(*counter.sorted()) == expected);
                CHECK_EQ(*counter.size(), expected.size());
                CHECK((counter.num_runs() > 0) == (cap < 1'000'000));
                CHECK(counter.num_runs() <= 64);
            }
        }
    }
}

std::vector<uint8_t> written(PretokenCounter& counter) {
    std::vector<uint8_t> blob;
    CountsWriter writer(
        [&](Bytes bytes) {
            blob.insert(blob.end(), bytes.begin(), bytes.end());
            return true;
        },
        "cl100k");
    const auto entries = counter.sorted();
    while (const auto entry = entries->next()) writer.add(*entry);
    CHECK(writer.finish());
    return blob;
}

bool is_readable(Bytes blob) {
    const std::unique_ptr<CountsReader> reader = CountsReader::from_bytes(blob);
    while (reader->next()) {
    }
    return reader->status().ok();
}

void test_counts_files() {
    std::mt19937 random(5);
    std::vector<std::string> texts = {random_text(random, 300), std::string(70'000, 'x')};
    const std::vector<Bytes> bytes = {as_bytes(texts[0]), as_bytes(texts[1])};
    PretokenCounter counter({});
    CHECK(counter.add_texts(bytes, 1).ok());
    std::vector<uint8_t> blob = written(counter);
    CHECK_EQ(CountsReader::from_bytes(blob)->pattern(), "cl100k");
    CHECK(contents(*CountsReader::from_bytes(blob)) == plain_counts(texts, Pattern::kCl100k));

    const TemporaryFolder folder;
    const std::string path = folder.path() + "/counts";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    CHECK_EQ(std::fwrite(blob.data(), 1, blob.size(), file), blob.size());
    std::fclose(file);
    CHECK(contents(*CountsReader::open(path)) == plain_counts(texts, Pattern::kCl100k));
    CHECK(!CountsReader::open(folder.path() + "/none")->status().ok());

    for (size_t size = 0; size < blob.size(); size += 1 + size / 40) CHECK(!is_readable(Bytes(blob).first(size)));
    for (int i = 0; i < 1000; ++i) {
        const size_t place = random() % (i % 2 ? 1200 : blob.size());
        const auto flip = static_cast<uint8_t>(1 + random() % 255);
        blob[place] ^= flip;
        CHECK(!is_readable(blob));
        blob[place] ^= flip;
    }
    blob.push_back(0);
    CHECK(!is_readable(blob));
}

void test_a_run_that_cannot_be_written() {
    PretokenCounter counter({Pattern::kCl100k, 1, "/nowhere at all"});
    const Bytes text = as_bytes("some words");
    const Status error = counter.add_texts({&text, 1}, 1);
    CHECK(!error.ok() && error.code == StatusCode::kFile);
}

// (What comes out is compared with an oracle and with tokenizers by the Python tests.)
void test_huggingface_rules_do_not_depend_on_order() {
    std::mt19937 random(6);
    for (int round = 0; round < 60; ++round) {
        std::vector<std::pair<std::string, uint64_t>> pretokens;
        for (size_t n = 1 + random() % 40; n > 0; --n) {
            std::string pretoken = std::to_string(n);
            for (size_t length = random() % (round % 2 ? 300 : 12); length > 0; --length)
                pretoken += static_cast<char>('a' + random() % 2);
            pretokens.emplace_back(pretoken, 1 + random() % 5);
        }
        std::vector<std::vector<uint8_t>> blobs;
        for (int order = 0; order < 2; ++order) {
            TrainerSettings settings;
            settings.tie_break = TieBreak::kHuggingFace;
            settings.vocab_size = 10 + 60 * static_cast<size_t>(round);
            const std::unique_ptr<Trainer> trainer = std::move(*Trainer::make(settings));
            for (const auto& [pretoken, count] : pretokens) CHECK(trainer->add(as_bytes(pretoken), count).ok());
            blobs.push_back((*Vocabulary::make(std::move(*trainer->train([](size_t, size_t) {})))).serialize());
            std::ranges::shuffle(pretokens, random);
        }
        CHECK(blobs[0] == blobs[1]);
    }
}

void test_counts_that_are_too_large() {
    const std::unique_ptr<Trainer> trainer = std::move(*Trainer::make({}));
    CHECK(trainer->add(as_bytes("ab"), uint64_t{1} << 61).ok());
    CHECK(!trainer->add(as_bytes("abcd"), uint64_t{1} << 61).ok());
}

}  // namespace
}  // namespace fastcompress::bpe

int main(int argc, char** argv) {
    fastcompress::bpe::test_counting();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    fastcompress::bpe::test_merge_loop();
    fastcompress::bpe::test_huge_pretokens();
    fastcompress::bpe::test_pretokens_of_positions();
    fastcompress::bpe::test_counts_files();
    fastcompress::bpe::test_a_run_that_cannot_be_written();
    fastcompress::bpe::test_huggingface_rules_do_not_depend_on_order();
    fastcompress::bpe::test_counts_that_are_too_large();
    return fastcompress::testing::report();
}
