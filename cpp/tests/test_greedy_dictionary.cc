// Greedy dictionaries against the definition: parses of every short text and of long ones walked in several places at
// once, legality of every short sequence, files, ids from nowhere, and training for every number of threads.
#include <algorithm>
#include <set>

#include "check.h"
#include "fastcompress/greedy_dictionary/canonical_states.h"
#include "fastcompress/greedy_dictionary/dictionary.h"
#include "fastcompress/greedy_dictionary/trainer.h"

namespace fastcompress::greedy_dictionary {
namespace {

using Strings = std::set<std::string>;

Strings singles() {
    Strings strings;
    for (int byte = 0; byte < 256; ++byte) strings.insert(std::string(1, static_cast<char>(byte)));
    return strings;
}

Strings random_strings(std::mt19937& random, size_t num_letters, size_t num_strings, size_t longest) {
    Strings strings = singles();
    for (size_t i = 0; i < num_strings; ++i) {
        std::string text;
        for (size_t n = 2 + random() % (longest - 1); n > 0; --n) {
            text += static_cast<char>('a' + random() % num_letters);
        }
        strings.insert(text);
    }
    return strings;
}

std::shared_ptr<const Dictionary> make(const Strings& strings) {
    Result<Dictionary> dictionary = Dictionary::from_strings({strings.begin(), strings.end()});
    CHECK(dictionary.ok());
    return std::make_shared<const Dictionary>(std::move(*dictionary));
}

std::vector<std::string> encode_plainly(const Strings& strings, std::string_view text) {
    std::vector<std::string> by_length(strings.begin(), strings.end());
    std::ranges::stable_sort(by_length, std::greater<>(), &std::string::size);
    std::vector<std::string> tokens;
    while (!text.empty()) {
        const auto begins_text = [&](const std::string& string) { return text.starts_with(string); };
        tokens.push_back(*std::ranges::find_if(by_length, begins_text));
        text.remove_prefix(tokens.back().size());
    }
    return tokens;
}

std::vector<uint32_t> encode_all(const Dictionary& dictionary, std::string_view text, size_t num_threads = 1) {
    std::vector<uint32_t> ids;
    dictionary.encode(as_bytes(text), num_threads, ids);
    return ids;
}

std::vector<std::string> spell(const Dictionary& dictionary, const std::vector<uint32_t>& ids) {
    std::vector<std::string> tokens;
    for (const uint32_t id : ids) tokens.emplace_back(as_chars(dictionary.string(id)));
    return tokens;
}

std::string decode_all(const Dictionary& dictionary, std::span<const uint32_t> ids) {
    const Result<size_t> size = dictionary.decoded_bytes(ids);
    CHECK(size.ok());
    if (!size.ok()) return {};
    std::vector<uint8_t> out(*size);  // allocated to the byte
    CHECK(dictionary.decode(ids, out));
    return std::string(as_chars(out));
}

void test_every_short_text() {
    std::mt19937 random(1);
    for (int round = 0; round < 30; ++round) {
        const Strings strings = random_strings(random, 2, 1 + random() % 12, 7);
        const auto dictionary = make(strings);
        std::vector<std::string> all = {""};
        for (size_t i = 0; i < all.size(); ++i) {
            const std::string text = all[i];
            const auto ids = encode_all(*dictionary, text);
            CHECK(spell(*dictionary, ids) == encode_plainly(strings, text));
            CHECK(decode_all(*dictionary, ids) == text);
            if (text.size() < 9) all.insert(all.end(), {text + 'a', text + 'b'});
        }
    }
}

// Every sequence of up to four tokens over two letters: legal step by step if and only if it is the encoding of its
// bytes; and the rows say the same as the steps.
void test_legality() {
    std::mt19937 random(2);
    for (int round = 0; round < 30; ++round) {
        const Strings strings = random_strings(random, 2, 1 + random() % 6, 6);
        const auto dictionary = make(strings);
        const CanonicalStates states(dictionary);
        std::vector<uint32_t> tokens;
        for (uint32_t id = 0; id < dictionary->size(); ++id) {
            const auto text = dictionary->string(id);
            if (std::ranges::all_of(text, [](uint8_t byte) { return byte == 'a' || byte == 'b'; })) {
                tokens.push_back(id);
            }
        }
        std::vector<uint8_t> row(states.row_bytes());
        std::vector<std::vector<uint32_t>> all = {{}};
        for (size_t i = 0; i < all.size(); ++i) {
            const std::vector<uint32_t> ids = all[i];
            std::vector<uint32_t> before(ids.size() + 1);
            CHECK(states.states_before(0, std::span(ids), before).ok());
            states.write_row(before.back(), row);
            for (const uint32_t id : tokens) {
                std::vector<uint32_t> longer = ids;
                longer.push_back(id);
                const bool is_canonical = encode_all(*dictionary, decode_all(*dictionary, longer)) == longer;
                CHECK(states.advance(before.back(), id).has_value() == is_canonical);
                CHECK((row[id / 8] >> id % 8 & 1) == is_canonical);
                if (is_canonical && longer.size() < 4) all.push_back(longer);
            }
        }
    }
}

void test_long_texts() {
    std::mt19937 random(3);
    for (int round = 0; round < 40; ++round) {
        const Strings strings = random_strings(random, 3, random() % 100, round % 2 == 0 ? 6 : 255);
        const auto dictionary = make(strings);
        const size_t size = random() % (round % 10 == 0 ? 200000 : 20000);
        std::string text;
        while (text.size() < size) {
            const auto random_letters = testing::random_text(random, 50);
            if (random() % 3 == 0) text += std::string(random() % 2000, static_cast<char>('a' + random() % 3));
            // Beginnings of strings, so that walks go too far.
            auto at = strings.begin();
            std::advance(at, static_cast<ptrdiff_t>(random() % strings.size()));
            text += at->substr(0, at->size() - random() % at->size()) + random_letters;
        }
        const auto expected = encode_plainly(strings, text);
        for (const size_t num_threads : {1, 2, 5}) {
            CHECK(spell(*dictionary, encode_all(*dictionary, text, num_threads)) == expected);
        }
        CHECK(decode_all(*dictionary, encode_all(*dictionary, text)) == text);
    }
}

// Each walk reads 254 bytes and comes back by 253: the lanes run out of steps.
void test_walks_that_come_back() {
    Strings strings = singles();
    strings.insert(std::string(254, 'a') + 'b');
    const auto dictionary = make(strings);
    const std::string text = std::string(50000, 'a') + 'b' + std::string(253, 'a') + 'b';
    const auto ids = encode_all(*dictionary, text, 2);
    CHECK_EQ(ids.size(), 50000u - 254 + 1 + 254);
    CHECK(decode_all(*dictionary, ids) == text);
}

void test_files() {
    std::mt19937 random(4);
    const auto dictionary = make(random_strings(random, 3, 100, 20));
    const std::vector<uint8_t> file = dictionary->serialize();
    const Result<Dictionary> again = Dictionary::parse(file);
    CHECK(again.ok() && again->fingerprint() == dictionary->fingerprint());
    for (size_t i = 0; i < file.size(); i += 5) {
        std::vector<uint8_t> damaged = file;
        damaged[i] ^= 1;
        CHECK(!Dictionary::parse(damaged).ok());
        CHECK(!Dictionary::parse(Bytes(file).first(i)).ok());
    }
    // With a right checksum: each byte changed in turn is refused, or a dictionary that writes itself so.
    for (size_t i = 8; i + 32 < file.size(); ++i) {
        std::vector<uint8_t> changed(file.begin(), file.end() - 32);
        changed[i] = static_cast<uint8_t>(changed[i] + 1 + random() % 255);
        const Sha256Digest digest = sha256(changed);
        changed.insert(changed.end(), digest.begin(), digest.end());
        const Result<Dictionary> parsed = Dictionary::parse(changed);
        if (parsed.ok()) CHECK(parsed->serialize() == changed);
    }
}

void test_ids_from_nowhere() {
    const auto dictionary = make(singles());
    const std::vector<uint32_t> bad = {3, 256};
    CHECK(!dictionary->decoded_bytes(std::span<const uint32_t>(bad)).ok());
    std::vector<uint8_t> out(2);
    CHECK(!dictionary->decode(std::span<const uint32_t>(bad), out));
    const std::vector<uint16_t> good(100, 255);
    CHECK(dictionary->decoded_bytes(std::span<const uint16_t>(good)).ok());
    std::vector<uint8_t> small(99);
    CHECK(!dictionary->decode(std::span<const uint16_t>(good), small));
}

void test_training() {
    std::mt19937 random(6);
    std::string text;
    for (int i = 0; i < 30000; ++i)
        text += testing::random_text(random, 6) + (random() % 2 == 0 ? "the end " : " of it");
    const std::string_view view = text;
    const std::vector<Bytes> documents = {as_bytes(view.substr(0, 100000)), as_bytes(""),
                                          as_bytes(view.substr(100000))};
    TrainerSettings settings = {600, 4, 1, false};
    const auto one = train_dictionary(documents, settings);
    settings.num_threads = 3;
    const auto three = train_dictionary(documents, settings);
    CHECK(one.ok() && three.ok() && *one == *three);
    CHECK_EQ(one->size(), 600u);
    settings.num_rounds = 0;
    const auto grown = train_dictionary(documents, settings);
    const auto tokens = [&](const std::vector<std::string>& strings) {
        return encode_all(*make({strings.begin(), strings.end()}), text).size();
    };
    CHECK(tokens(*one) < tokens(*grown));
    const auto same = train_dictionary(documents, settings, *one);
    CHECK(same.ok() && *same == *one);
    settings.size = 300;
    CHECK(!train_dictionary(documents, settings, *one).ok());
    CHECK(!train_dictionary({}, settings).ok());
}

}  // namespace
}  // namespace fastcompress::greedy_dictionary

int main(int argc, char** argv) {
    using namespace fastcompress::greedy_dictionary;
    test_long_texts();
    test_walks_that_come_back();
    test_training();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    test_every_short_text();
    test_legality();
    test_files();
    test_ids_from_nowhere();
    return fastcompress::testing::report();
}
