// The integer models: there and back, frozen and adaptive, building blocks, files; adaptive frequencies against plain
// sums. What the model is, is tested against the definition in Python (tests/test_context_mixer.py). Run without
// vectors too.
#include <numeric>

#include "check.h"
#include "fastcompress/arithmetic/adaptive_frequencies.h"
#include "fastcompress/context_mixer/bit_history.h"
#include "fastcompress/context_mixer/context_mixer.h"
#include "fastcompress/context_mixer/logistic.h"

namespace fastcompress::context_mixer {
namespace {

using arithmetic::AdaptiveFrequencies;
using arithmetic::FrequencyParams;
using arithmetic::RangeDecoder;
using arithmetic::RangeEncoder;
using Vector = std::vector<uint8_t>;

uint32_t below(std::mt19937& random, uint32_t bound) {
    return static_cast<uint32_t>(random()) % bound;
}

MixerParams small_params(uint32_t window = 0) {
    return {.log2_table_bytes = 14, .log2_match_entries = 10, .reset_interval = window};
}

// Words, repetitions, a table, noise.
Vector sample(std::mt19937& random, size_t size) {
    Vector out;
    while (out.size() < size) {
        const uint32_t kind = below(random, 4);
        if (kind == 0 && !out.empty()) {
            const size_t begin = random() % out.size();
            for (size_t i = 0, n = 5 + random() % 60; i < n; ++i) out.push_back(out[begin + i]);
        } else if (kind == 1) {
            const std::string text = testing::random_text(random, 30);
            out.insert(out.end(), text.begin(), text.end());
        } else if (kind == 2) {
            for (uint32_t row = 0; row < 30; ++row) {
                for (uint32_t column = 0; column < 12; ++column) {
                    out.push_back(static_cast<uint8_t>(column * column + (column == 5 ? row : 0)));
                }
            }
        } else {
            for (int i = 0; i < 10; ++i) out.push_back(static_cast<uint8_t>(random()));
        }
    }
    out.resize(size);
    return out;
}

void test_tables() {
    CHECK_EQ(squash(0), 32768u);
    CHECK_EQ(squash(kMaxSum) + squash(-kMaxSum), 65536u);
    for (int x = -kMaxSum; x < kMaxSum; ++x) CHECK(squash(x) <= squash(x + 1) && squash(x) >= 1);
    CHECK_EQ(stretch(2048), 0);
    for (uint32_t p = 1; p < 4096; ++p) CHECK(stretch(p - 1) <= stretch(p));
    CHECK(kBitHistories.size <= 256);
    for (int state = 0; state < kBitHistories.size; ++state) {
        for (const bool bit : {false, true}) {
            const uint8_t next = kBitHistories.next[static_cast<size_t>(state)][bit];
            CHECK(next > 0 && next < kBitHistories.size);
            const BitHistory history = kBitHistories.histories[next];
            CHECK((bit ? history.ones : history.zeros) > 0);
        }
    }
}

void test_there_and_back() {
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
        const uint32_t window = round % 3 == 0 ? 1 + below(random, 50) : 0;
        ContextMixer mixer(small_params(window));
        const Vector before = sample(random, random() % 3000);
        mixer.update(before);
        if (round % 2 == 0) mixer.freeze();
        const Vector data = sample(random, random() % 5000);
        const Vector message = mixer.encode(data);
        const Sha256Digest print = mixer.fingerprint();
        Result<Vector> back = mixer.decode(message, data.size());
        CHECK(back.ok() && *back == data);
        CHECK(mixer.fingerprint() == print);
    }
}

// Blocks of one stream, other symbols between them.
void test_building_blocks() {
    std::mt19937 random(2);
    std::vector<Vector> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(sample(random, random() % 9000));
    for (const bool frozen : {false, true}) {
        ContextMixer learned(small_params());
        learned.update(sample(random, 2000));
        if (frozen) learned.freeze();
        ContextMixer writer(learned);
        ContextMixer reader(learned);
        RangeEncoder encoder;
        for (const Vector& block : blocks) {
            encoder.encode(static_cast<uint32_t>(block.size()), 1, 16);
            writer.encode(block, encoder);
        }
        const Vector message = encoder.finish();
        RangeDecoder decoder(message);
        for (const Vector& block : blocks) {
            const uint32_t size = decoder.peek(16);
            decoder.consume(size, 1);
            Vector out(size);
            CHECK(reader.decode(decoder, out).ok());
            CHECK(out == block);
        }
        CHECK(decoder.ok());
        CHECK(writer.fingerprint() == reader.fingerprint());
    }
}

void test_distributions() {
    std::mt19937 random(3);
    ContextMixer mixer(small_params());
    mixer.update(sample(random, 20000));
    for (int round = 0; round < 50; ++round) {
        const Vector context = sample(random, random() % 20);
        const unsigned precision = 8 + below(random, 17);
        std::array<uint32_t, 256> adaptive;
        std::array<uint32_t, 256> frozen;
        mixer.distribution(context, precision, adaptive);
        ContextMixer copy(mixer);
        copy.freeze();
        copy.distribution(context, precision, frozen);
        CHECK(adaptive == frozen);
        CHECK_EQ(std::accumulate(frozen.begin(), frozen.end(), uint64_t{0}), uint64_t{1} << precision);
        CHECK(*std::ranges::min_element(frozen) >= 1);
    }
}

void test_files() {
    std::mt19937 random(4);
    ContextMixer mixer(small_params(100));
    mixer.update(sample(random, 5000));
    const Vector blob = mixer.serialize();
    Result<ContextMixer> read = ContextMixer::parse(blob);
    CHECK(read.ok());
    CHECK(read->serialize() == blob);
    CHECK(read->params() == mixer.params());
    const Vector data = sample(random, 3000);
    CHECK(read->encode(data) == mixer.encode(data));
    for (int round = 0; round < 300; ++round) {
        Vector bad = blob;
        bad[random() % bad.size()] ^= static_cast<uint8_t>(1u << random() % 8);
        if (round % 3 == 0) bad.resize(random() % bad.size());
        CHECK(!ContextMixer::parse(bad).ok());
        // The same with a good digest: refused, or a model that works.
        bad = blob;
        bad[12 + random() % (bad.size() - 44)] = static_cast<uint8_t>(random());
        const Sha256Digest digest = sha256(Bytes(bad).first(bad.size() - 32));
        std::ranges::copy(digest, bad.end() - 32);
        Result<ContextMixer> other = ContextMixer::parse(bad);
        if (!other.ok() || other->params().log2_table_bytes > 20) continue;
        const Vector few(data.begin(), data.begin() + 200);
        Result<Vector> back = other->decode(other->encode(few), few.size());
        CHECK(back.ok() && *back == few);
    }
}

void test_bad_messages() {
    std::mt19937 random(5);
    const ContextMixer mixer(small_params());
    const Vector data = sample(random, 100000);
    Vector message = mixer.encode(data);
    message.resize(message.size() / 2);
    CHECK(!mixer.decode(message, data.size()).ok());
    CHECK(!mixer.decode(message, size_t{1} << 50).ok());
    CHECK(!check(MixerParams{.log2_table_bytes = 11}).ok());
    CHECK(!check(MixerParams{.log2_match_entries = 25}).ok());
    CHECK(check(MixerParams{}).ok());
}

void test_adaptive_frequencies() {
    std::mt19937 random(6);
    for (int round = 0; round < 200; ++round) {
        const uint32_t num_symbols = 1 + below(random, round % 10 == 0 ? 70000 : 40);
        FrequencyParams params = {num_symbols, 1 + below(random, 40)};
        if (round % 2 == 0)
            params.limit = std::min(2 * num_symbols + 2 * params.increment + below(random, 500), 1u << 16);
        if (!check(params).ok()) continue;
        AdaptiveFrequencies writer(params);
        AdaptiveFrequencies reader(params);
        std::vector<uint32_t> symbols(random() % 3000);
        for (uint32_t& symbol : symbols) symbol = std::min(below(random, num_symbols), below(random, num_symbols));
        RangeEncoder encoder;
        writer.encode(symbols, encoder);
        const Vector message = encoder.finish();
        RangeDecoder decoder(message);
        std::vector<uint32_t> back(symbols.size());
        CHECK(reader.decode(decoder, back).ok());
        CHECK(back == symbols);
        const std::vector<uint32_t> ends = writer.cumulative();
        CHECK(ends == reader.cumulative());
        CHECK_EQ(ends.front(), 0u);
        CHECK_EQ(ends.back(), 1u << writer.precision());
        for (uint32_t symbol = 0; symbol < num_symbols; symbol += 1 + num_symbols / 50) {
            CHECK(ends[symbol] < ends[symbol + 1]);
            const AdaptiveFrequencies::Interval part = writer.interval(symbol);
            CHECK(part.cumulative == ends[symbol] && part.cumulative + part.frequency == ends[symbol + 1]);
            CHECK_EQ(writer.symbol_at(ends[symbol]), symbol);
            CHECK_EQ(writer.symbol_at(ends[symbol + 1] - 1), symbol);
        }
    }
    CHECK(!check(FrequencyParams{0}).ok());
    CHECK(!check(FrequencyParams{(1u << 22) + 1}).ok());
    CHECK(!check(FrequencyParams{.num_symbols = 10, .increment = 32, .limit = 83}).ok());
    CHECK(check(FrequencyParams{.num_symbols = 1u << 22}).ok());
}

}  // namespace
}  // namespace fastcompress::context_mixer

int main() {
    using namespace fastcompress::context_mixer;
    test_tables();
    test_there_and_back();
    test_building_blocks();
    test_distributions();
    test_files();
    test_bad_messages();
    test_adaptive_frequencies();
    return fastcompress::testing::report();
}
