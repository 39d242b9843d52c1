// Memory that runs out, at every allocation of sessions with LZ77: everything is as it was before the call that failed.
#include "failing_allocator.h"
#include "fastcompress/lz77/buckets.h"
#include "fastcompress/lz77/lzp.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/parser_batch.h"
#include "fastcompress/lz77/suffix_array.h"

namespace fastcompress {
namespace {

using testing::bytes_of_numbers;
using testing::Session;
using testing::walk_outcome;
using testing::wordy_text;
using ByteVector = std::vector<uint8_t>;

void append(ByteVector& to, Bytes bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

ByteVector bytes_of_tokens(const lz77::TokenColumns& tokens) {
    ByteVector bytes(tokens.kinds.begin(), tokens.kinds.end());
    append(bytes, bytes_of_numbers(tokens.values));
    append(bytes, bytes_of_numbers(tokens.lengths));
    return bytes;
}

struct Parsers {
    std::vector<lz77::IncrementalParser> all;
    std::vector<ByteVector> observe() const {
        std::vector<ByteVector> states;
        for (const auto& parser : all) {
            states.push_back(bytes_of_tokens(parser.tokens()));
            states.push_back(bytes_of_numbers(std::vector<size_t>{parser.num_bytes(), parser.num_stable()}));
        }
        return states;
    }
};

const std::vector<lz77::Params> kLzParams = {{},
                                             {65536, 4, 258, 8, lz77::ParseRule::kLazy},
                                             {1000, 3, 258, lz77::kUnlimited, lz77::ParseRule::kGreedy},
                                             {lz77::kUnlimited, 9, 40, lz77::kUnlimited, lz77::ParseRule::kLazy}};

void test_incremental_parser() {
    const std::string text = wordy_text(1, 700);
    const std::string other = wordy_text(2, 300);
    for (const lz77::Params& params : kLzParams) {
        const auto add = [](size_t i, Bytes bytes) {
            return [i, bytes](Parsers& parsers) { parsers.all[i].append(bytes); };
        };
        Session<Parsers> session{"IncrementalParser",
                                 [&] {
                                     Parsers parsers;
                                     parsers.all.reserve(4);
                                     parsers.all.emplace_back(params);
                                     return parsers;
                                 },
                                 {}};
        auto& steps = session.steps;
        steps.push_back(add(0, as_bytes(text)));
        for (const char& byte : other.substr(0, 20)) {
            steps.push_back([byte](Parsers& parsers) { parsers.all[0].append(static_cast<uint8_t>(byte)); });
        }
        steps.push_back([](Parsers& parsers) { parsers.all.push_back(parsers.all[0]); });
        steps.push_back([](Parsers& parsers) { parsers.all[1].truncate(parsers.all[1].num_bytes() - 77); });
        steps.push_back(add(1, as_bytes(other)));
        steps.push_back(add(0, as_bytes(other).subspan(300)));
        steps.push_back([](Parsers& parsers) { parsers.all.push_back(parsers.all[1]); });
        steps.push_back(add(2, as_bytes(text)));  // more than a fork keeps apart
        steps.push_back([](Parsers& parsers) { parsers.all[1].truncate(500); });
        steps.push_back(add(1, as_bytes(text).subspan(100)));
        if (params.rule == lz77::ParseRule::kGreedy) {
            steps.push_back([](Parsers& parsers) { parsers.all[0].push_token(lz77::Token::literal('~')); });
            steps.push_back([](Parsers& parsers) { parsers.all[2].push_token(lz77::Token::literal('|')); });
        }
        steps.push_back([](Parsers& parsers) { parsers.all[0].truncate(0); });
        steps.push_back(add(0, as_bytes(text)));
        session.walk();
    }
}

struct Batch {
    lz77::ParserBatch parsers;
    std::vector<ByteVector> observe() const {
        std::vector<ByteVector> states;
        for (size_t i = 0; i < parsers.size(); ++i) states.push_back(bytes_of_tokens(parsers[i].tokens()));
        return states;
    }
};

void test_parser_batch() {
    const std::string text = wordy_text(3, 60);
    Session<Batch> session{"ParserBatch", [] { return Batch{{lz77::Params{}, 3}}; }, {}};
    const auto append_all = [&](size_t begin, size_t end, size_t num_streams) {
        for (size_t i = begin; i < end; ++i) {
            ByteVector bytes;
            for (size_t k = 0; k < num_streams; ++k) bytes.push_back(static_cast<uint8_t>(text[(i + k) % text.size()]));
            session.steps.push_back([bytes](Batch& batch) { batch.parsers.append(bytes); });
        }
    };
    const auto select = [&](std::vector<size_t> sources) {
        session.steps.push_back([sources](Batch& batch) { batch.parsers.select(sources); });
    };
    append_all(0, 100, 3);
    select({2, 0, 0, 2, 2});
    append_all(100, 140, 5);
    select({1, 1, 4});
    append_all(140, 160, 3);
    // Several bytes per stream at once, on forks that share a history and on streams with a history of their own.
    const auto append_columns = [&](size_t num_each) {
        const ByteVector bytes(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(3 * num_each));
        session.steps.push_back([bytes, num_each](Batch& batch) { batch.parsers.append(bytes, num_each); });
    };
    for (const size_t num_each : {2, 3, 17, 0}) append_columns(num_each);
    select({2, 2, 2});
    for (const size_t num_each : {5, 1, 16}) append_columns(num_each);
    session.num_dense = 200;
    session.walk();
}

void test_one_shot_lz77() {
    const std::string text = wordy_text(4, 2000);
    for (const lz77::Params& params : kLzParams) {
        walk_outcome("parse", [&] { return bytes_of_tokens(lz77::parse(as_bytes(text), params)); });
    }
    walk_outcome("suffix_array", [&] { return bytes_of_numbers(lz77::suffix_array(as_bytes(text))); });
    const lz77::Params params;
    const lz77::TokenColumns tokens = lz77::parse(as_bytes(text), params);
    const lz77::BucketAlphabet alphabet(params);
    const std::vector<uint32_t> ids = alphabet.encode(tokens);
    walk_outcome("BucketAlphabet::encode", [&] { return bytes_of_numbers(alphabet.encode(tokens)); });
    walk_outcome("BucketAlphabet::decode", [&] { return bytes_of_tokens(alphabet.decode(ids)->tokens); });
    const lz77::LzpParams lzp;
    const std::vector<uint32_t> lzp_ids = lz77::lzp_encode(as_bytes(text), lzp);
    walk_outcome("lzp_encode", [&] { return bytes_of_numbers(lz77::lzp_encode(as_bytes(text), lzp)); });
    walk_outcome("lzp_decode", [&] { return *lz77::lzp_decode(lzp_ids, lzp, text.size()); });
}

}  // namespace
}  // namespace fastcompress

int main() {
    using namespace fastcompress;
    test_one_shot_lz77();
    test_parser_batch();
    test_incremental_parser();
    return testing::report();
}
