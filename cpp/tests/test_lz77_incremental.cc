// The incremental parser against the parse by definition, after every kind of operation; and legality, exhaustively:
// every string over two and three letters has exactly one sequence of legal tokens, and that is its parse.
#include <memory>
#include <thread>

#include "check.h"
#include "fastcompress/lz77/incremental_parser.h"
#include "lz77_oracle.h"

namespace fastcompress::lz77 {
namespace {

using testing::parse_plainly;
using testing::small_settings;
using testing::to_vector;

// A parser and the text it should hold.
struct Stream {
    IncrementalParser parser;
    std::string text;
    explicit Stream(const Params& params) : parser(params) {}
    void check() const {
        const std::vector<Token> expected = parse_plainly(text, parser.params());
        CHECK(to_vector(parser.tokens()) == expected);
        CHECK_EQ(parser.num_bytes(), text.size());
        CHECK(parser.num_stable() <= expected.size());
        const uint32_t m = parser.params().min_length;
        const bool is_lazy = parser.params().rule == ParseRule::kLazy;
        CHECK(expected.size() - parser.num_stable() <= std::max(is_lazy ? 2u : 1u, m - 1));
    }
};

void test_operations(const Params& params, std::mt19937& random, int num_operations, uint32_t num_letters) {
    std::vector<std::unique_ptr<Stream>> streams;
    streams.push_back(std::make_unique<Stream>(params));
    for (int k = 0; k < num_operations; ++k) {
        Stream& stream = *streams[random() % streams.size()];
        const uint32_t operation = random() % 8;
        if (operation < 4) {
            const size_t count = random() % (operation == 0 ? 20 : 3);
            std::string added;
            for (size_t i = 0; i < count; ++i) added += static_cast<char>('a' + random() % num_letters);
            const std::vector<Token> stable_before = [&] {
                std::vector<Token> tokens;
                for (size_t i = 0; i < stream.parser.num_stable(); ++i) tokens.push_back(stream.parser.stable_token(i));
                return tokens;
            }();
            stream.parser.append(as_bytes(added));
            stream.text += added;
            CHECK(stream.parser.num_stable() >= stable_before.size());
            for (size_t i = 0; i < stable_before.size(); ++i) CHECK(stream.parser.stable_token(i) == stable_before[i]);
        } else if (operation < 6) {
            const size_t size = stream.text.size();
            const size_t left = random() % 3 == 0 ? random() % (size + 1) : size - std::min<size_t>(size, random() % 4);
            stream.parser.truncate(left);
            stream.text.resize(left);
        } else if (operation == 6 && streams.size() < 6) {
            streams.push_back(std::make_unique<Stream>(stream));
        } else if (streams.size() > 1) {
            streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(random() % streams.size()));
        }
        for (const auto& each : streams) each->check();
    }
}

void test_random_operations() {
    std::mt19937 random(1);
    for (int round = 0; round < 8; ++round) {
        for (const Params& params : small_settings(true))
            test_operations(params, random, 60, 1 + static_cast<uint32_t>(random()) % 3);
    }
    for (int round = 0; round < 30; ++round) {
        const Params params = {random() % 2 ? 50u : kUnlimited, 1 + static_cast<uint32_t>(random()) % 10, kUnlimited,
                               1 + static_cast<uint32_t>(random()) % 4,
                               round % 2 ? ParseRule::kLazy : ParseRule::kGreedy};
        test_operations(params, random, 150, 2);
    }
}

// Long enough for tables to grow, what is added to a copy to be gathered, and copies of copies.
void test_long_streams() {
    std::mt19937 random(2);
    for (const ParseRule rule : {ParseRule::kGreedy, ParseRule::kLazy}) {
        const Params params = {300, 3, 20, 4, rule};
        std::vector<std::unique_ptr<Stream>> streams;
        streams.push_back(std::make_unique<Stream>(params));
        for (int k = 0; k < 40; ++k) {
            Stream& stream = *streams[random() % streams.size()];
            for (int i = 0; i < 150; ++i) {
                const char letter = static_cast<char>('a' + random() % 3);
                stream.parser.append(static_cast<uint8_t>(letter));
                stream.text += letter;
            }
            if (random() % 2 == 0) {
                const size_t left = stream.text.size() - random() % std::min<size_t>(stream.text.size(), 200);
                stream.parser.truncate(left);
                stream.text.resize(left);
            }
            if (streams.size() < 4) {
                streams.push_back(std::make_unique<Stream>(stream));
            } else if (random() % 3 == 0) {
                streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(random() % streams.size()));
            }
            for (const auto& each : streams) each->check();
        }
    }
}

void test_copies_in_threads() {
    Stream stream({300, 3, 20, 4, ParseRule::kGreedy});
    for (int i = 0; i < 2000; ++i) {
        stream.text += static_cast<char>('a' + i * i % 7 % 3);
        stream.parser.append(static_cast<uint8_t>(stream.text.back()));
    }
    std::vector<Stream> copies(4, stream);
    std::vector<std::thread> threads;
    for (size_t k = 0; k < copies.size(); ++k) {
        threads.emplace_back([&copies, k] {
            std::mt19937 random(static_cast<uint32_t>(k));
            for (int i = 0; i < 1000; ++i) {
                copies[k].text += static_cast<char>('a' + random() % 3);
                copies[k].parser.append(static_cast<uint8_t>(copies[k].text.back()));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Stream& copy : copies) copy.check();
    stream.check();
}

// All sequences of legal tokens that spell strings over the letters, depth first. Each is the parse of its bytes, so no
// string is reached twice.
class LegalSequences {
  public:
    LegalSequences(const Params& params, size_t num_letters, size_t max_size)
        : params_(params), num_letters_(num_letters), max_size_(max_size) {}

    size_t count() {
        visit(IncrementalParser(params_), "");
        return num_strings_;
    }

  private:
    void visit(const IncrementalParser& parser, const std::string& text) {
        ++num_strings_;
        CHECK(to_vector(parser.tokens()) == parse_plainly(text, params_));
        const size_t left = max_size_ - text.size();
        if (left == 0) return;
        const std::array<bool, 256> literals = parser.legal_literals();
        for (size_t letter = 0; letter < num_letters_; ++letter) {
            const char byte = static_cast<char>('a' + letter);
            if (literals[static_cast<uint8_t>(byte)])
                follow(parser, Token::literal(static_cast<uint8_t>(byte)), text + byte);
        }
        const std::vector<uint32_t> distances = parser.legal_distances();
        for (uint32_t distance = 1; distance <= text.size() + 1; ++distance) {
            const IncrementalParser::Lengths lengths = parser.legal_lengths(distance);
            CHECK(lengths.is_empty() == (std::ranges::find(distances, distance) == distances.end()));
            std::string longer = text;
            for (uint32_t length = 1; length <= left; ++length) {
                if (distance <= text.size()) longer += longer[longer.size() - distance];
                const Token token = Token::match(distance, length);
                const bool is_legal = length >= lengths.shortest && length <= lengths.longest;
                CHECK(parser.is_legal(token) == is_legal);
                if (is_legal) follow(parser, token, longer);
                if (is_legal || distance > text.size()) continue;
                std::vector<Token> sequence = parse_plainly(text, params_);
                sequence.push_back(token);
                CHECK(parse_plainly(longer, params_) != sequence);
            }
        }
    }
    void follow(const IncrementalParser& parser, const Token& token, const std::string& text) {
        IncrementalParser next = parser;
        CHECK(next.push_token(token));
        visit(next, text);
    }

    Params params_;
    size_t num_letters_;
    size_t max_size_;
    size_t num_strings_ = 0;
};

void test_legality(size_t num_letters, size_t max_size) {
    size_t num_strings = 0;
    for (size_t size = 0, of_size = 1; size <= max_size; ++size, of_size *= num_letters) num_strings += of_size;
    for (const Params& params : small_settings(false)) {
        CHECK_EQ(LegalSequences(params, num_letters, max_size).count(), num_strings);
    }
}

// The example of FORMAT.md: "a" has been followed by every byte.
void test_dead_end() {
    IncrementalParser parser({kUnlimited, 2, kUnlimited, kUnlimited, ParseRule::kGreedy});
    for (int byte = 0; byte < 256; ++byte) {
        const uint8_t pair[] = {'a', static_cast<uint8_t>(byte)};
        parser.append(pair);
    }
    parser.append(uint8_t{'a'});  // after the byte 255, which nothing has followed so far
    CHECK(std::ranges::none_of(parser.legal_literals(), std::identity()));
    CHECK(parser.legal_distances().empty());
}

// A moved-from parser and its parts are empty, and can be used again.
void test_moved_from() {
    const std::string text = "abcabcabcabd abcabcabcabd";
    IncrementalParser parser({65536, 3, 258, 32, ParseRule::kGreedy});
    parser.append(as_bytes(text));
    const IncrementalParser fork = parser;
    const IncrementalParser moved = std::move(parser);
    CHECK_EQ(parser.num_bytes(), 0u);
    CHECK_EQ(parser.num_stable(), 0u);
    CHECK(parser.tokens().size() == 0 && parser.legal_literals()['a']);
    parser.append(as_bytes(text));
    for (const IncrementalParser* other : {&fork, &moved}) {
        CHECK(testing::to_vector(other->tokens()) == testing::to_vector(parser.tokens()));
    }
}

}  // namespace
}  // namespace fastcompress::lz77

int main(int argc, char** argv) {
    using namespace fastcompress::lz77;
    const bool is_whole = argc > 1 && std::string(argv[1]) == "all";  // some minutes
    test_copies_in_threads();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    test_random_operations();
    test_long_streams();
    test_dead_end();
    test_legality(2, is_whole ? 10 : 9);
    test_legality(3, is_whole ? 10 : 6);
    test_moved_from();
    return fastcompress::testing::report();
}
