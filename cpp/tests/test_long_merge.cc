// Long pretokens, which are merged in pieces that must agree: against merging by the definition, where pieces agree at
// once, late, and never.
#include <algorithm>
#include <map>
#include <set>

#include "check.h"
#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/bpe/train/trainer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {
namespace {

using pretokenizer::Pattern;

// While some adjacent pair merges, merge the leftmost one of lowest rank.
std::vector<TokenId> merge_plainly(const Vocabulary& vocabulary, Bytes pretoken) {
    std::map<size_t, TokenId> tokens;             // by the place where they begin
    std::set<std::pair<uint32_t, size_t>> pairs;  // those that merge: rank, and the place where the left token begins
    using Place = std::map<size_t, TokenId>::iterator;
    const auto pair_at = [&](Place left) {
        const Place right = std::next(left);
        const bool is_last = right == tokens.end();
        return std::pair(is_last ? kNoRank : vocabulary.find_rank(left->second, right->second), left->first);
    };
    const auto insert = [&](Place left) {
        if (const auto pair = pair_at(left); pair.first != kNoRank) pairs.insert(pair);
    };
    for (const uint8_t byte : pretoken) tokens.emplace_hint(tokens.end(), tokens.size(), vocabulary.byte_token(byte));
    for (Place place = tokens.begin(); place != tokens.end(); ++place) insert(place);
    while (!pairs.empty()) {
        const auto [rank, begin] = *pairs.begin();
        const Place merged = tokens.find(begin);
        const Place first = merged == tokens.begin() ? merged : std::prev(merged);
        const Place second = std::next(merged);
        for (const Place place : {first, merged, second}) pairs.erase(pair_at(place));
        merged->second = vocabulary.merge_result(rank);
        tokens.erase(second);
        insert(first);
        insert(merged);
    }
    std::vector<TokenId> ids;
    for (const auto& [begin, id] : tokens) ids.push_back(id);
    return ids;
}

void check(const Vocabulary& vocabulary, Encoder& encoder, const std::string& text) {
    TokenBuffer ids;
    encoder.encode_by_merges(as_bytes(text), ids);
    CHECK(std::ranges::equal(ids.tokens(), merge_plainly(vocabulary, as_bytes(text))));
}

// Lengths around those where the way of merging changes, and any up to 5,000.
size_t random_size(std::mt19937& random) {
    constexpr size_t kBoundaries[] = {1, 64, 96, 97, 112, 128, 160, 288, 1024, 1600};
    const size_t boundary = kBoundaries[random() % std::size(kBoundaries)];
    return random() % 2 == 0 ? boundary + random() % 3 : 1 + random() % 5000;
}

std::string random_string(std::mt19937& random, std::string_view alphabet, size_t size) {
    std::string text;
    while (text.size() < size) text += alphabet[random() % alphabet.size()];
    return text;
}

// Runs and repeated words of random lengths, after each other.
std::string random_runs(std::mt19937& random, std::string_view alphabet, size_t size) {
    std::string text;
    while (text.size() < size) {
        const std::string word = random_string(random, alphabet, 1 + random() % 3);
        for (size_t n = random() % (size_t{1} << random() % 12); n > 0 && text.size() < size; --n) text += word;
    }
    return text.substr(0, size);
}

std::string all_bytes() {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
    return bytes;
}

void check_random_texts(const Vocabulary& vocabulary, std::mt19937& random, std::string_view alphabet, int count) {
    Encoder encoder(vocabulary);
    for (int i = 0; i < count; ++i) {
        check(vocabulary, encoder, random_string(random, alphabet, random_size(random)));
        check(vocabulary, encoder, random_runs(random, alphabet, random_size(random)));
    }
}

Vocabulary of_ranks(std::vector<std::string> words) {
    VocabularySpec spec;
    spec.order = MergeOrder::kRanks;
    spec.pattern = Pattern::kNone;
    for (int byte = 0; byte < 256; ++byte) spec.tokens.emplace_back(1, static_cast<char>(byte));
    spec.tokens.insert(spec.tokens.end(), words.begin(), words.end());
    return std::move(*Vocabulary::make(std::move(spec)));
}

// Any strings in any order: tokens that no merge reaches, and pairs whose rank is lower than that of their halves.
void test_random_ranks() {
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
        const std::string_view alphabet = std::string_view("abcdefgh").substr(0, 1 + random() % 8);
        std::vector<std::string> words;
        for (int i = 0; i < 200; ++i)
            words.push_back(random_string(random, alphabet, 2 + random() % (1 + random() % 9)));
        std::ranges::sort(words);
        words.erase(std::unique(words.begin(), words.end()), words.end());
        std::ranges::shuffle(words, random);
        check_random_texts(of_ranks(words), random, alphabet, 6);
    }
}

// Tokens longer than windows and their overlaps, as rank files have them of spaces: windows never agree.
void test_long_tokens() {
    std::mt19937 random(2);
    for (int round = 0; round < 10; ++round) {
        std::vector<std::string> words;
        for (size_t length = 2; length <= 700; length += 1 + random() % (1 + length / 4)) {
            words.push_back(std::string(length, 'a'));
            words.push_back(std::string(length, 'b') + "a");
        }
        if (round % 2 == 1) std::ranges::shuffle(words, random);
        check_random_texts(of_ranks(words), random, round % 3 == 0 ? "a" : "aaaaaaaaaaaab", 8);
    }
}

// Runs that are copied piece by piece, one after the other with the same encoder, and what follows them.
void test_repeated_pieces() {
    std::mt19937 random(5);
    std::vector<std::string> words;
    for (size_t length = 2; length <= 40; ++length) {
        for (const char letter : {'a', 'b'}) words.push_back(std::string(length, letter));
    }
    words.push_back("ab");
    const Vocabulary vocabulary = of_ranks(words);
    Encoder encoder(vocabulary);
    for (const size_t size : {9000, 15000, 16000, 20000}) {
        check(vocabulary, encoder, std::string(size, 'a'));
        check(vocabulary, encoder, std::string(size - 3000, 'b') + "ab");
        check(vocabulary, encoder,
              std::string(9001, 'a') + std::string(size - 9000, 'b') + random_string(random, "ab", 99));
    }
}

// A token of which the whole text decides whether it comes to be: "ab" merges before "bc", and so on around the
// alphabet, so what merges at one end decides at the other. Pieces agree never, which must cost time only.
void test_far_effects() {
    std::mt19937 random(3);
    const Vocabulary vocabulary = of_ranks({"yz", "xy", "wx", "vw", "uv", "zu"});
    Encoder encoder(vocabulary);
    for (int round = 0; round < 30; ++round) {
        std::string text = random_string(random, "uvwxyz", random() % 7);
        const size_t size = random_size(random) + (round % 10 == 0 ? 30000 : 0);
        while (text.size() < size) text += "uvwxyz";
        text += random_string(random, "uvwxyz", random() % 7);
        check(vocabulary, encoder, text);
        std::ranges::reverse(text);
        check(vocabulary, encoder, text);
    }
}

void test_learned_merges() {
    std::mt19937 random(4);
    const std::string bytes = all_bytes();
    for (const std::string_view alphabet :
         {std::string_view("ab"), std::string_view("the quickbrown"), std::string_view(bytes)}) {
        const std::string corpus = random_string(random, alphabet, 20000) + random_runs(random, alphabet, 5000);
        PretokenCounts counts;
        counts.add_text(as_bytes(corpus), Pattern::kNone);
        TrainerSettings settings;
        settings.pattern = Pattern::kNone;
        settings.vocab_size = 256 + 300;
        const std::unique_ptr<Trainer> trainer = std::move(*Trainer::make(std::move(settings)));
        counts.for_each(
            [&](const PretokenCounts::Entry& entry) { CHECK(trainer->add(entry.pretoken, entry.count).ok()); });
        VocabularySpec spec = std::move(*trainer->train([](size_t, size_t) {}));
        const Vocabulary vocabulary = std::move(*Vocabulary::make(spec));
        check_random_texts(vocabulary, random, alphabet, 40);

        spec.tokens[0xff] = "\xef\xbf\xbd";  // a byte that is encoded as another string, of another length
        std::erase_if(spec.merges,
                      [&](const Merge& merge) { return spec.tokens[merge.result].find('\xff') != std::string::npos; });
        const Vocabulary replacing = std::move(*Vocabulary::make(std::move(spec)));
        check_random_texts(replacing, random, std::string(alphabet.substr(0, 20)) + "\xff", 10);
    }
}

}  // namespace
}  // namespace fastcompress::bpe

int main() {
    fastcompress::bpe::test_random_ranks();
    fastcompress::bpe::test_long_tokens();
    fastcompress::bpe::test_repeated_pieces();
    fastcompress::bpe::test_far_effects();
    fastcompress::bpe::test_learned_merges();
    return fastcompress::testing::report();
}
