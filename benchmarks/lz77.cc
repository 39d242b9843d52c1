// LZ77 beside libdeflate, and the incremental parser beside the one-shot one: everything in one process, medians of the
// rounds, outputs compared before anything is timed. `python benchmarks/run.py lz77` builds it and runs it.
//   lz77 ROUNDS FILE...    prints one JSON object
#include <libdeflate.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "fastcompress/lz77/incremental_parser.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/parser_batch.h"
#include "fastcompress/lz77/reconstruct.h"

namespace {

using namespace fastcompress;
using namespace fastcompress::lz77;

// CPU time of this process, which has one thread: other programs on the machine do not count.
double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds(const std::function<void()>& body) {
    const double begin = now();
    body();
    return now() - begin;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

bool equal(const TokenColumns& a, const TokenColumns& b) {
    return a.kinds == b.kinds && a.values == b.values && a.lengths == b.lengths;
}

void append_singly(IncrementalParser& parser, Bytes text) {
    for (const uint8_t byte : text) parser.append(byte);
}

// The time of one append after `history`, of its full parse, and of each kind of legality query, in microseconds.
void print_single(Bytes text, const Params& params, int rounds) {
    const Bytes history = text.first(std::min<size_t>(text.size() / 2, 65536));
    const Bytes next = text.subspan(history.size(), std::min<size_t>(text.size() - history.size(), 10000));
    std::vector<double> append, reparse, literals, distances, push;
    for (int round = 0; round < rounds; ++round) {
        IncrementalParser parser(params);
        parser.append(history);
        append.push_back(seconds([&] { append_singly(parser, next); }) / static_cast<double>(next.size()));
        reparse.push_back(seconds([&] { (void)parse(history, params); }));
        size_t sum = 0;
        literals.push_back(seconds([&] {
                               for (int k = 0; k < 100; ++k) sum += parser.legal_literals()[static_cast<size_t>(k)];
                           }) /
                           100);
        distances.push_back(seconds([&] { sum += parser.legal_distances().size(); }));
        const TokenColumns tokens = parse(next, params);
        push.push_back(seconds([&] {
                           IncrementalParser fresh(params);
                           for (size_t i = 0; i < tokens.size(); ++i) sum += fresh.push_token(tokens[i]);
                       }) /
                       static_cast<double>(tokens.size()));
        if (sum == 0) fail("nothing was legal");
    }
    std::printf(
        "\"append_us\": %.4f, \"reparse_us\": %.1f, \"legal_literals_us\": %.2f, \"legal_distances_us\": %.1f, "
        "\"push_token_us\": %.3f, ",
        median(append) * 1e6, median(reparse) * 1e6, median(literals) * 1e6, median(distances) * 1e6,
        median(push) * 1e6);
}

void print_streams(Bytes text, const Params& params, int rounds) {
    constexpr size_t kStreams = 256;
    const size_t length = std::min<size_t>(text.size() / kStreams, 4096);
    std::vector<double> times, forked;
    for (int round = 0; round < rounds; ++round) {
        ParserBatch batch(params, kStreams);
        std::vector<uint8_t> column(kStreams);
        times.push_back(seconds([&] {
            for (size_t i = 0; i < length; ++i) {
                for (size_t k = 0; k < kStreams; ++k) column[k] = text[k * length + i];
                batch.append(column);
            }
        }));
        // Forks of one history of 64 KiB, each going its own way.
        ParserBatch forks(params, 1);
        forks[0].append(text.first(std::min<size_t>(text.size() / 2, 65536)));
        forks.select(std::vector<size_t>(kStreams, 0));
        forked.push_back(seconds([&] {
                             for (size_t i = 0; i < length / 4; ++i) {
                                 for (size_t k = 0; k < kStreams; ++k) column[k] = text[k * length + i];
                                 forks.append(column);
                             }
                         }) *
                         4);
    }
    const double per_byte = 1e9 / static_cast<double>(kStreams * length);
    std::printf("\"stream_ns\": %.1f, \"forked_stream_ns\": %.1f", median(times) * per_byte, median(forked) * per_byte);
}

void print_file(const std::string& path, int rounds) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<uint8_t> text{std::istreambuf_iterator<char>(file), {}};
    if (text.size() < 1000) fail("the text is too short");
    const Params params;  // greedy, window 64 KiB, depth 32, min_length 4
    Params lazy = params;
    lazy.rule = ParseRule::kLazy;
    Params exact = params;
    exact.depth = kUnlimited;
    exact.max_length = kUnlimited;

    const TokenColumns tokens = parse(text, params);
    const auto size = reconstructed_bytes(tokens.kinds, tokens.values, tokens.lengths, text.size());
    std::vector<uint8_t> back(text.size());
    const bool is_whole = reconstruct(tokens.kinds, tokens.values, tokens.lengths, back);
    if (!size.ok() || !is_whole || back != text) fail("reconstructing the parse does not give the text");
    IncrementalParser incremental(params);
    append_singly(incremental, text);
    if (!equal(incremental.tokens(), tokens)) fail("the incremental parse differs");
    const size_t num_exact = parse(text, exact).size();

    libdeflate_compressor* const compressor = libdeflate_alloc_compressor(6);
    std::vector<uint8_t> compressed(libdeflate_deflate_compress_bound(compressor, text.size()));
    std::vector<double> one_shot, lazily, deflate, singly, restore;
    for (int round = 0; round < rounds; ++round) {
        deflate.push_back(seconds([&] {
            (void)libdeflate_deflate_compress(compressor, text.data(), text.size(), compressed.data(),
                                              compressed.size());
        }));
        one_shot.push_back(seconds([&] { (void)parse(text, params); }));
        lazily.push_back(seconds([&] { (void)parse(text, lazy); }));
        singly.push_back(seconds([&] {
            IncrementalParser parser(params);
            append_singly(parser, text);
        }));
        restore.push_back(seconds([&] { (void)reconstruct(tokens.kinds, tokens.values, tokens.lengths, back); }));
    }
    libdeflate_free_compressor(compressor);
    const double megabytes = static_cast<double>(text.size()) / 1e6;
    std::printf(
        "\"%s\": {\"megabytes\": %.3f, \"parse\": %.1f, \"parse_lazy\": %.1f, \"libdeflate_6\": %.1f, \"append\": "
        "%.1f, "
        "\"reconstruct\": %.1f, \"phrases\": %zu, \"phrases_exact\": %zu, ",
        path.substr(path.rfind('/') + 1).c_str(), megabytes, megabytes / median(one_shot), megabytes / median(lazily),
        megabytes / median(deflate), megabytes / median(singly), megabytes / median(restore), tokens.size(), num_exact);
    print_single(text, params, rounds);
    print_streams(text, params, rounds);
    std::printf("}");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) fail("usage: lz77 ROUNDS FILE...");
    std::printf("{\"libdeflate\": \"%s\", \"texts\": {", LIBDEFLATE_VERSION_STRING);
    for (int i = 2; i < argc; ++i) {
        if (i > 2) std::printf(", ");
        print_file(argv[i], std::atoi(argv[1]));
    }
    std::printf("}}\n");
}
