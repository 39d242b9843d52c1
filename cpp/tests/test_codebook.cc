// Codebooks against the definition: greedy parses of every short text and of long ones walked in several places at
// once, files, decoding of ids from nowhere, and training for every number of threads.
#include <algorithm>
#include <set>

#include "check.h"
#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/codebook_encoder.h"
#include "fastcompress/equal_info/codebook_trainer.h"

namespace fastcompress::equal_info {
namespace {

using Strings = std::set<std::string>;

// Single bytes, random strings over the first letters, and what fills up to 511.
Strings random_strings(std::mt19937& random, size_t num_letters, size_t longest) {
    Strings strings;
    for (int byte = 0; byte < 256; ++byte) strings.insert(std::string(1, static_cast<char>(byte)));
    std::vector<std::string> bases;
    for (size_t i = 0; i < num_letters; ++i) bases.emplace_back(1, static_cast<char>('a' + i));
    const size_t num_random = random() % 200;
    for (size_t i = 0; i < num_random; ++i) {
        const std::string base = bases[random() % bases.size()];
        const std::string longer = base + static_cast<char>('a' + random() % num_letters);
        if (base.size() < longest && strings.insert(longer).second) bases.push_back(longer);
    }
    for (int a = 128; a < 256; ++a) {
        for (int b = 0; b < 256 && strings.size() < 511; ++b) {
            strings.insert({static_cast<char>(a), static_cast<char>(b)});
        }
    }
    return strings;
}

Codebook make(const Strings& strings) {
    Result<Codebook> book = Codebook::from_strings(9, "", {strings.begin(), strings.end()});
    CHECK(book.ok());
    return std::move(*book);
}

std::vector<uint32_t> encode_plainly(const Codebook& book, const Strings& strings, std::string_view text) {
    std::vector<uint32_t> ids;
    while (!text.empty()) {
        size_t length = 1;
        for (size_t n = 2; n <= text.size() && strings.contains(std::string(text.substr(0, n))); ++n) length = n;
        const auto less = [&](uint32_t id, std::string_view other) { return as_chars(book.string(id)) < other; };
        std::vector<uint32_t> all(book.size());
        for (uint32_t id = 0; id < all.size(); ++id) all[id] = id;
        ids.push_back(*std::lower_bound(all.begin(), all.end(), text.substr(0, length), less));
        text.remove_prefix(length);
    }
    return ids;
}

std::vector<uint32_t> encode_all(const Codebook& book, Bytes text, size_t num_threads = 1) {
    std::vector<uint32_t> ids;
    encode(book.table(), text, num_threads, ids);
    return ids;
}

std::string decode_all(const Codebook& book, std::span<const uint32_t> ids) {
    const Result<size_t> size = book.decoded_bytes(ids);
    CHECK(size.ok());
    if (!size.ok()) return {};
    std::vector<uint8_t> out(*size);  // allocated to the byte
    CHECK(book.decode(ids, out));
    return std::string(as_chars(out));
}

void test_every_short_text() {
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round) {
        const Strings strings = random_strings(random, 2, 6);
        const Codebook book = make(strings);
        std::vector<std::string> all = {""};
        for (size_t i = 0; i < all.size(); ++i) {
            const std::string text = all[i];
            const auto ids = encode_all(book, as_bytes(text));
            CHECK(ids == encode_plainly(book, strings, text));
            CHECK(decode_all(book, ids) == text);
            for (size_t k = 0; k + 1 < ids.size(); ++k) CHECK(!book.extends(ids[k], book.string(ids[k + 1])[0]));
            if (text.size() < 7) all.insert(all.end(), {text + 'a', text + 'b'});
        }
    }
}

// Every sequence of up to three tokens over two letters is what its bytes are encoded to if and only if its steps are
// legal.
void test_legality() {
    std::mt19937 random(2);
    for (int round = 0; round < 10; ++round) {
        const Codebook book = make(random_strings(random, 2, 4));
        std::vector<uint32_t> tokens;
        for (uint32_t id = 0; id < book.size(); ++id) {
            if (std::ranges::all_of(book.string(id), [](uint8_t b) { return b == 'a' || b == 'b'; }))
                tokens.push_back(id);
        }
        for (const uint32_t a : tokens) {
            for (const uint32_t b : tokens) {
                for (const uint32_t c : tokens) {
                    const std::vector<uint32_t> ids = {a, b, c};
                    const bool is_legal = !book.extends(a, book.string(b)[0]) && !book.extends(b, book.string(c)[0]);
                    CHECK(is_legal == (encode_all(book, as_bytes(decode_all(book, ids))) == ids));
                }
            }
        }
    }
}

// The plain walk, one place at a time.
std::vector<uint32_t> walk(const Codebook& book, Bytes text, std::span<const uint64_t> ends) {
    std::vector<uint32_t> ids;
    const uint8_t* next = text.data();
    for (const uint64_t end : ends) {
        while (next < text.data() + end) ids.push_back(book.table().longest(next, text.data() + end));
    }
    return ids;
}

void test_long_texts() {
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        const Codebook book = make(random_strings(random, 3, 100));
        const size_t size = random() % (round % 10 == 0 ? 400000 : 30000);
        std::vector<uint8_t> text(size);
        size_t i = 0;
        while (i < size) {
            const size_t run = std::min<size_t>(size - i, random() % 3 == 0 ? random() % 5000 : random() % 50);
            const bool is_run = random() % 2 == 0;
            const auto letter = static_cast<uint8_t>('a' + random() % 3);
            for (size_t k = 0; k < run; ++k) text[i++] = is_run ? letter : static_cast<uint8_t>('a' + random() % 3);
        }
        std::vector<uint64_t> ends;
        for (uint64_t end = 0; end < size;) ends.push_back(end = std::min<uint64_t>(size, end + 1 + random() % 300));
        const std::vector<uint64_t> whole(size > 0, size);
        const auto expected = walk(book, text, whole);
        for (const size_t num_threads : {1, 2, 5}) {
            CHECK(encode_all(book, text, num_threads) == expected);
            std::vector<uint32_t> ids;
            encode_within(book.table(), text, ends, num_threads, ids);
            CHECK(ids == walk(book, text, ends));
        }
        CHECK(decode_all(book, expected) == as_chars(text));
    }
}

// Parses that never meet: tokens of 255 equal bytes from whichever place one begins.
void test_runs() {
    Strings strings;
    for (int byte = 0; byte < 256; ++byte) strings.insert(std::string(1, static_cast<char>(byte)));
    for (size_t n = 2; n <= 255; ++n) strings.insert(std::string(n, 'a'));
    strings.insert("bb");
    const Codebook book = make(strings);
    for (const size_t size : {255u, 256u, 5000u, 100000u, 300001u}) {
        const std::vector<uint8_t> text(size, 'a');
        const auto ids = encode_all(book, text, 3);
        CHECK_EQ(ids.size(), (size + 254) / 255);
        CHECK(decode_all(book, ids) == as_chars(text));
    }
}

void test_files() {
    std::mt19937 random(4);
    const Codebook book = make(random_strings(random, 3, 20));
    const std::vector<uint8_t> file = book.serialize();
    const Result<Codebook> again = Codebook::parse(file);
    CHECK(again.ok());
    CHECK((*again).nodes() == book.nodes());
    CHECK((*again).fingerprint() == book.fingerprint());
    for (size_t i = 0; i < file.size(); ++i) {
        std::vector<uint8_t> damaged = file;
        damaged[i] ^= 1;
        if (i % 7 == 0) CHECK(!Codebook::parse(damaged).ok());
        if (i % 13 == 0) CHECK(!Codebook::parse(Bytes(file).first(i)).ok());
    }
    // With a right checksum: every length and byte changed in turn is refused, or a codebook that writes itself so.
    for (size_t i = 12; i + 32 < file.size(); ++i) {
        std::vector<uint8_t> changed(file.begin(), file.end() - 32);
        changed[i] = static_cast<uint8_t>(changed[i] + 1 + random() % 255);
        const Sha256Digest digest = sha256(changed);
        changed.insert(changed.end(), digest.begin(), digest.end());
        const Result<Codebook> parsed = Codebook::parse(changed);
        if (parsed.ok()) CHECK((*parsed).serialize() == changed);
    }
}

void test_ids_from_nowhere() {
    std::mt19937 random(5);
    const Codebook book = make(random_strings(random, 2, 30));
    const std::vector<uint32_t> bad = {3, 511};
    CHECK(!book.decoded_bytes(std::span<const uint32_t>(bad)).ok());
    const std::vector<uint16_t> good(100, 510);
    CHECK(book.decoded_bytes(std::span<const uint16_t>(good)).ok());
    CHECK(!book.decoded_bytes(std::span<const uint16_t>(good), 99).ok());
}

void test_training() {
    std::mt19937 random(6);
    std::string text;
    for (int i = 0; i < 60000; ++i)
        text += testing::random_text(random, 6) + (random() % 2 == 0 ? "the end " : " of it");
    const std::string_view view = text;
    const std::vector<Document> documents = {
        {as_bytes(view.substr(0, 200000)), {}}, {as_bytes(""), {}}, {as_bytes(view.substr(200000)), {}}};
    TrainerSettings settings;
    settings.bits = 10;
    settings.num_rounds = 4;
    const auto one = train_codebook(documents, settings);
    settings.num_threads = 3;
    const auto three = train_codebook(documents, settings);
    CHECK(one.ok() && three.ok() && *one == *three);
    CHECK(Codebook::make(10, "", *one).ok());
    settings.num_rounds = 0;
    const auto unrefined = train_codebook(documents, settings);
    const size_t refined_tokens = encode_all(*Codebook::make(10, "", *one), as_bytes(text)).size();
    CHECK(refined_tokens < encode_all(*Codebook::make(10, "", *unrefined), as_bytes(text)).size());
    const auto further = train_codebook(documents, settings, *one);
    CHECK(further.ok() && *further == *one);
    settings.bits = 9;
    CHECK(!train_codebook(documents, settings, *one).ok());
    settings.bits = 17;
    CHECK(!train_codebook(documents, settings).ok());
    settings.bits = 16;
    CHECK(Codebook::make(16, "", *train_codebook({}, settings)).ok());
    settings.within_words = true;
    CHECK(Codebook::make(16, "", *train_codebook({}, settings)).ok());
}

}  // namespace
}  // namespace fastcompress::equal_info

int main(int argc, char** argv) {
    using namespace fastcompress::equal_info;
    test_long_texts();
    test_runs();
    test_training();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    test_every_short_text();
    test_legality();
    test_files();
    test_ids_from_nowhere();
    return fastcompress::testing::report();
}
