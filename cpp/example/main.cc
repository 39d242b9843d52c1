// Uses three of the cores on one text, without Python: trains a BPE vocabulary and encodes with it, parses the text with
// LZ77, and compresses it. Every round trip is checked; a failure ends the program with the message of the Status.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fastcompress/archive/container.h"
#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/bpe/train/trainer.h"
#include "fastcompress/lz77/parse.h"

namespace fc = fastcompress;

// Returns the value of a Result, or ends the program with its message.
template <class T>
T require(fc::Result<T> result) {
    if (!result.ok()) {
        std::fprintf(stderr, "%s\n", result.status().message.c_str());
        std::exit(1);
    }
    return std::move(*result);
}
void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed check: %s\n", what);
    std::exit(1);
}

fc::bpe::Vocabulary train(fc::Bytes text, size_t vocab_size) {
    const auto pattern = fc::pretokenizer::Pattern::kCl100k;
    fc::bpe::PretokenCounts counts;
    counts.add_text(text, pattern);
    const auto trainer = require(fc::bpe::Trainer::make({.pattern = pattern, .vocab_size = vocab_size}));
    counts.for_each([&](const fc::bpe::PretokenCounts::Entry& entry) {
        require(trainer->add(entry.pretoken, entry.count).ok(), "a pretoken can be added");
    });
    return require(fc::bpe::Vocabulary::make(require(trainer->train([](size_t, size_t) {}))));
}

int main() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "To be, or not to be: that is question " + std::to_string(i) + ".\n";
    const fc::Bytes bytes = fc::as_bytes(text);

    const fc::bpe::Vocabulary vocabulary = train(bytes, 320);
    fc::bpe::Encoder encoder(vocabulary);
    fc::bpe::TokenBuffer ids;
    encoder.encode(bytes, ids);
    require(fc::as_chars(require(fc::bpe::decode(vocabulary, ids.tokens()))) == text, "ids decode to the text");

    const fc::lz77::TokenColumns tokens = fc::lz77::parse(bytes, fc::lz77::Params{});

    const std::vector<uint8_t> blob = require(fc::archive::compress(bytes, {}));
    require(fc::as_chars(require(fc::archive::decompress(blob, text.size()))) == text,
            "the compressed file decompresses to the text");

    std::printf("%zu bytes: %zu BPE tokens, %zu LZ77 tokens, %zu bytes compressed\n", text.size(), ids.size(),
                tokens.size(), blob.size());
}
