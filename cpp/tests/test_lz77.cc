// One-shot parses and their reconstruction against the definition: every short string over two and three letters,
// random longer ones, texts longer than a block, and tokens from nowhere.
#include "check.h"
#include "fastcompress/lz77/exact_matcher.h"
#include "fastcompress/lz77/incremental_parser.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/reconstruct.h"
#include "fastcompress/lz77/suffix_array.h"
#include "lz77_oracle.h"

namespace fastcompress::lz77 {
namespace {

using testing::parse_plainly;
using testing::small_settings;
using testing::to_vector;

std::string reconstructed(const TokenColumns& tokens) {
    const Result<size_t> size = reconstructed_bytes(tokens.kinds, tokens.values, tokens.lengths, kMaxTextBytes);
    CHECK(size.ok());
    if (!size.ok()) return {};
    std::vector<uint8_t> out(*size);
    CHECK(reconstruct(tokens.kinds, tokens.values, tokens.lengths, out));
    return std::string(as_chars(out));
}

void check_parse(const std::string& text, const Params& params) {
    const std::vector<uint8_t> exact(text.begin(), text.end());  // allocated to the byte
    const TokenColumns tokens = parse(exact, params);
    CHECK(to_vector(tokens) == parse_plainly(text, params));
    CHECK(reconstructed(tokens) == text);
}

template <class Visit>
void for_each_string(size_t num_letters, size_t max_size, const Visit& visit) {
    std::vector<std::string> all = {""};
    for (size_t i = 0; i < all.size(); ++i) {
        visit(all[i]);
        if (all[i].size() == max_size) continue;
        for (size_t letter = 0; letter < num_letters; ++letter) all.push_back(all[i] + static_cast<char>('a' + letter));
    }
}

void test_short_strings() {
    for (const Params& params : small_settings(true)) {
        for_each_string(2, 10, [&](const std::string& text) { check_parse(text, params); });
        for_each_string(3, 7, [&](const std::string& text) { check_parse(text, params); });
    }
}

std::string random_text(std::mt19937& random, size_t size) {
    std::string text;
    const uint32_t num_letters = 1 + random() % 4;
    while (text.size() < size) {
        if (random() % 4 == 0 && !text.empty()) {
            const size_t begin = random() % text.size();
            const size_t length = 1 + random() % 40;
            for (size_t i = 0; i < length; ++i) text += text[begin + i];
        } else {
            text += static_cast<char>('a' + random() % num_letters);
        }
    }
    text.resize(size);
    return text;
}

Params random_params(std::mt19937& random) {
    const auto one_of = [&](std::initializer_list<uint32_t> values) {
        return values.begin()[random() % values.size()];
    };
    Params params;
    params.window = one_of({1, 2, 5, 20, 100, kUnlimited});
    params.min_length = one_of({1, 2, 3, 4, 5, 8, 9, 17});
    params.max_length = std::max(params.min_length, one_of({1, 3, 8, 9, 20, kUnlimited}));
    params.depth = one_of({1, 2, 3, 8, 32, kUnlimited});
    params.rule = random() % 2 == 0 ? ParseRule::kGreedy : ParseRule::kLazy;
    return params;
}

void test_random_texts() {
    std::mt19937 random(1);
    for (int round = 0; round < 4000; ++round) {
        check_parse(random_text(random, random() % (round % 50 == 0 ? 2000 : 150)), random_params(random));
    }
}

// Texts of several blocks, with matches across their ends: what is found is what a parse in one block finds.
void test_blocks() {
    std::mt19937 random(2);
    for (const uint32_t depth : {4u, kUnlimited}) {
        for (const ParseRule rule : {ParseRule::kGreedy, ParseRule::kLazy}) {
            std::string text = random_text(random, 70000) + std::string(140000, 'x');
            for (int i = 0; i < 100000; ++i) text += static_cast<char>(random());
            text += random_text(random, 200000);
            const std::vector<uint8_t> bytes(text.begin(), text.end());
            const Params params = {1000, 3, kUnlimited, depth, rule};
            const TokenColumns tokens = parse(bytes, params);
            CHECK(reconstructed(tokens) == text);
            size_t position = 0;
            for (const Token& token : to_vector(tokens)) {
                const size_t first = position > 1000 ? position - 1000 : 0;
                if (random() % 50 == 0) {  // what a match is depends on a window and itself
                    const std::string near =
                        text.substr(first, position - first + std::min<size_t>(token.length + 2000, 20000));
                    const Match match = testing::match_plainly(near, position - first, params);
                    if (token.kind == TokenKind::kMatch && token.length < 10000) {
                        CHECK_EQ(match.length, token.length);
                        CHECK_EQ(match.distance, token.value);
                    }
                    if (token.kind == TokenKind::kLiteral && rule == ParseRule::kGreedy) CHECK_EQ(match.length, 0u);
                }
                position += token.length;
            }
        }
    }
}

// The same tokens from the parser that sees one byte after the other, which test_lz77_incremental.cc holds to the
// definition.
void check_beside_incremental(const std::string& text, const Params& params) {
    IncrementalParser parser(params);
    parser.append(as_bytes(text));
    const std::vector<uint8_t> exact(text.begin(), text.end());  // allocated to the byte
    CHECK(to_vector(parse(exact, params)) == to_vector(parser.tokens()));
}

// Texts of several chunks and windows, of the settings that window_parse.cc takes and some that it does not.
void test_windows() {
    std::mt19937 random(5);
    std::string text;
    while (text.size() < 150000) {
        text += random_text(random, random() % 20000);
        if (random() % 4 == 0) text += std::string(random() % 9000, 'x');
        for (size_t i = random() % 500; i > 0; --i) text += static_cast<char>(random() % 64);
        if (text.size() > 66000 && random() % 2 == 0) text += text.substr(text.size() - 65536 - random() % 3, 3000);
    }
    for (const uint32_t window : {65537u, 65536u, 65535u, 9000u, 3u}) {
        for (const uint32_t min_length : {1u, 3u, 4u, 5u, 8u, 9u}) {
            for (const ParseRule rule : {ParseRule::kGreedy, ParseRule::kLazy}) {
                const uint32_t depth = min_length == 1 ? 4 : 1u << (random() % 7);
                const uint32_t longer = static_cast<uint32_t>(random() % 300);
                const uint32_t max_length = random() % 3 == 0 ? kUnlimited : min_length + longer;
                check_beside_incremental(text.substr(random() % 10000), {window, min_length, max_length, depth, rule});
            }
        }
    }
    // Short texts end in every part of a segment.
    for (size_t size = 1000; size < 1100; ++size) {
        check_beside_incremental(text.substr(size * 3, size), {});
        check_beside_incremental(text.substr(size * 3, size), {65536, 4, 258, 32, ParseRule::kLazy});
    }
}

// The greatest distance that 16 bits and a window of 64 KiB have, and one more.
void test_longest_distance() {
    for (const uint32_t distance : {65534u, 65535u, 65536u, 65537u}) {
        for (const size_t begin : {0u, 1u, 16380u, 70000u}) {
            std::mt19937 random(6);
            std::string text;
            const auto fill = [&](size_t size) {
                while (text.size() < size) text += static_cast<char>(128 + random() % 128);
            };
            fill(begin);
            text += "needle";
            fill(begin + distance);
            text += "needle";
            fill(text.size() + 3000);
            for (const ParseRule rule : {ParseRule::kGreedy, ParseRule::kLazy}) {
                const std::vector<Token> tokens = to_vector(parse(as_bytes(text), {65536, 4, 258, 32, rule}));
                const bool is_found = std::ranges::find(tokens, Token::match(distance, 6)) != tokens.end();
                CHECK_EQ(is_found, distance <= 65536);
            }
        }
    }
}

// A block of an exact parse ends inside the match one byte on, which therefore seems no longer than the one before it.
void test_lazy_match_across_blocks() {
    const Params params = {1000, 3, kUnlimited, kUnlimited, ParseRule::kLazy};
    constexpr size_t kBlock = 65536;
    for (size_t before_end = 0; before_end < 14; ++before_end) {
        std::mt19937 random(7);
        std::string text;
        const auto fill = [&](size_t size) {
            while (text.size() < size) text += static_cast<char>(128 + random() % 128);
        };
        fill(kBlock - 400);
        text += "abcde!";
        fill(kBlock - 200);
        text += "bcdefghijkl";
        fill(kBlock - before_end);
        text += "abcdefghijkl";
        fill(3 * kBlock);
        const auto distance = static_cast<uint32_t>(201 - before_end);
        size_t position = 0;
        bool is_found = false;
        for (const Token& token : to_vector(parse(as_bytes(text), params))) {
            is_found |= position == kBlock - before_end + 1 && token == Token::match(distance, 11);
            position += token.length;
        }
        CHECK(is_found);
        check_beside_incremental(text, params);
    }
}

void test_suffix_array() {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        const std::string text = random_text(random, random() % 100);
        std::vector<int32_t> expected(text.size());
        for (size_t i = 0; i < text.size(); ++i) expected[i] = static_cast<int32_t>(i);
        std::ranges::sort(expected, {}, [&](int32_t i) { return text.substr(static_cast<size_t>(i)); });
        CHECK(suffix_array(as_bytes(text)) == expected);
    }
    std::vector<uint8_t> bytes(100000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3 * 127);
    const std::vector<int32_t> suffixes = suffix_array(bytes);
    const std::string_view text = as_chars(bytes);
    for (size_t r = 1; r < suffixes.size(); ++r) {
        CHECK(text.substr(static_cast<size_t>(suffixes[r - 1])) < text.substr(static_cast<size_t>(suffixes[r])));
    }
}

void test_trees() {
    std::mt19937 random(4);
    for (int round = 0; round < 300; ++round) {
        const size_t size = 1 + random() % 40;
        std::vector<int32_t> values(size);
        for (int32_t& value : values) value = static_cast<int32_t>(random() % 5);
        const MinTree tree(values);
        for (size_t i = 0; i <= size; ++i) {
            for (int32_t least = 1; least < 6; ++least) {
                size_t first = i;
                while (first > 0 && values[first - 1] >= least) --first;
                CHECK_EQ(tree.first_of_run(i, least), first);
                size_t end = i;
                while (end < size && values[end] >= least) ++end;
                CHECK_EQ(tree.end_of_run(i, least), end);
            }
        }
        RankSet set(size * 200);
        std::vector<bool> plain(size * 200);
        for (int k = 0; k < 200; ++k) {
            const size_t rank = random() % plain.size();
            random() % 3 > 0 ? set.insert(rank) : set.erase(rank);
            plain[rank] = false;
            size_t before = RankSet::kNone;
            size_t after = RankSet::kNone;
            for (size_t r = rank; r-- > 0 && before == RankSet::kNone;) before = plain[r] ? r : before;
            for (size_t r = rank + 1; r < plain.size() && after == RankSet::kNone; ++r) after = plain[r] ? r : after;
            CHECK_EQ(set.before(rank), before);
            CHECK_EQ(set.after(rank), after);
            set.insert(rank);
            plain[rank] = true;
        }
    }
}

void test_bad_tokens() {
    const auto fails = [](std::vector<Token> tokens, size_t max_bytes) {
        TokenColumns columns;
        for (const Token& token : tokens) columns.push(token);
        return !reconstructed_bytes(columns.kinds, columns.values, columns.lengths, max_bytes).ok();
    };
    CHECK(!fails({Token::literal('a'), Token::match(1, 4)}, 5));
    CHECK(fails({Token::literal('a'), Token::match(1, 5)}, 5));
    CHECK(fails({Token::literal('a'), Token::match(2, 1)}, 5));
    CHECK(fails({Token::match(1, 1)}, 5));
    CHECK(fails({Token::literal('a'), Token::match(0, 1)}, 5));
    CHECK(fails({Token::literal('a'), Token::match(1, 0)}, 5));
    CHECK(fails({Token{TokenKind::kLiteral, 256, 1}}, 5));
    CHECK(fails({Token{TokenKind::kLiteral, 0, 2}}, 5));
    CHECK(fails({Token{static_cast<TokenKind>(2), 1, 1}}, 5));
    std::vector<Token> huge = {Token::literal('a')};
    for (int i = 0; i < 100; ++i) huge.push_back(Token::match(1, kUnlimited));
    CHECK(fails(huge, kMaxTextBytes));
}

void test_params() {
    CHECK(check(Params{}).ok());
    CHECK(!check(Params{.window = 0}).ok());
    CHECK(!check(Params{.min_length = 0}).ok());
    CHECK(!check(Params{.min_length = 65}).ok());
    CHECK(!check(Params{.max_length = 3}).ok());
    CHECK(!check(Params{.depth = 0}).ok());
}

}  // namespace
}  // namespace fastcompress::lz77

int main() {
    using namespace fastcompress::lz77;
    test_params();
    test_suffix_array();
    test_trees();
    test_bad_tokens();
    test_short_strings();
    test_random_texts();
    test_blocks();
    test_windows();
    test_longest_distance();
    test_lazy_match_across_blocks();
    return fastcompress::testing::report();
}
