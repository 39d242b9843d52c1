// The archive: models against plain sums, blocks and whole archives there and back in any pieces and on any number of
// threads, and damage of every kind.
#include <algorithm>

#include "check.h"
#include "fastcompress/archive/container.h"
#include "fastcompress/archive/lz_codec.h"
#include "fastcompress/archive/lz_parse.h"
#include "fastcompress/archive/nibble_model.h"
#include "fastcompress/common/xxh64.h"

namespace fastcompress::archive {
namespace {

using testing::random_text;
using ByteVector = std::vector<uint8_t>;

uint32_t below(std::mt19937& random, uint32_t end) {
    return static_cast<uint32_t>(random() % end);
}

ByteVector bytes_of(const std::string& text) {
    return {text.begin(), text.end()};
}

// From the specification's own sanity test: bytes made by multiplying, seeds 0 and 2654435761.
void test_xxh64() {
    ByteVector bytes(222);
    uint64_t generator = 2654435761u;
    for (uint8_t& byte : bytes) {
        byte = static_cast<uint8_t>(generator >> 56);
        generator *= 11400714785074694797u;
    }
    const auto hash = [&](size_t size, uint64_t seed) { return xxh64(Bytes(bytes).first(size), seed); };
    CHECK_EQ(hash(0, 0), 0xef46db3751d8e999u);
    CHECK_EQ(hash(0, 2654435761u), 0xac75fda2929b17efu);
    CHECK_EQ(hash(1, 0), 0xe934a84adb052768u);
    CHECK_EQ(hash(1, 2654435761u), 0x5014607643a9b4c3u);
    CHECK_EQ(hash(4, 0), 0x9136a0dca57457eeu);
    CHECK_EQ(hash(14, 0), 0x8282dcc4994e35c8u);
    CHECK_EQ(hash(14, 2654435761u), 0xc3bd6bf63deb6df0u);
    CHECK_EQ(hash(222, 0), 0xb641ae8cb691c174u);
    CHECK_EQ(hash(222, 2654435761u), 0x20cb8ab7ae10c14au);
    CHECK_EQ(xxh64(as_bytes("abc"), 0), 0x44bc2cf5ad770999u);
}

// The vectors against the definition, in plain sums.
void test_nibble_models() {
    std::mt19937 random(1);
    NibbleModel model = NibbleModel::uniform();
    NibbleModel other = NibbleModel::uniform();
    const Rates rates = Rates::up_to(6);
    for (int round = 0; round < 6000; ++round) {
        const unsigned symbol = round % 3000 < 1500 ? below(random, 16) : static_cast<unsigned>(round) / 3000 % 16;
        NibbleModel expected = model;
        for (unsigned i = 1; i < 16; ++i) {
            const int target = static_cast<int>(i) + (i > symbol ? 32768 - 16 : 0);
            const int value = model.values[i];
            expected.values[i] = static_cast<uint16_t>(value + ((target - value) >> rates.shift[model.num_seen()]));
        }
        expected.values[0] = static_cast<uint16_t>(std::min(model.num_seen() + 1, 255u));
        NibbleModel plain = model;
        learn_scalar(plain, symbol, rates);
        learn(model, symbol, rates);
        CHECK(model.values == expected.values);
        CHECK(plain.values == expected.values);
        if (round % 2 == 0) learn(other, below(random, 16), rates);

        const auto weight = static_cast<uint16_t>(random());
        const Nibbles mixed = Nibbles(model).towards(other, weight);
        const ScalarNibbles mixed_scalar = ScalarNibbles(model).towards(other, weight);
        uint32_t begin = 0;
        for (unsigned s = 0; s < 16; ++s) {
            const auto mix = [&](unsigned i) {
                const int difference = int{other.values[i]} - model.values[i];
                return i == 16 ? 32768 : static_cast<int>(model.values[i] + ((int64_t{difference} * weight) >> 16));
            };
            const auto end = static_cast<uint32_t>(s == 15 ? 32768 : mix(s + 1));
            const Part part = mixed.part(s);
            CHECK_EQ(part.cumulative, begin);
            CHECK_EQ(part.frequency, end - begin);
            CHECK(end > begin);
            CHECK_EQ(mixed_scalar.part(s).cumulative, begin);
            CHECK_EQ(mixed_scalar.part(s).frequency, end - begin);
            CHECK_EQ(mixed_scalar.find(begin), s);
            CHECK_EQ(mixed_scalar.find(end - 1), s);
            CHECK_EQ(mixed.find(begin), s);
            CHECK_EQ(mixed.find(end - 1), s);
            begin = end;
        }
    }
}

void test_fields() {
    for (uint32_t distance = 1; distance < 300000; ++distance) {
        const unsigned c = distance_class(distance);
        CHECK(kClassBase[c] <= distance && distance < kClassBase[c + 1]);
    }
    for (const uint32_t distance : {kClassBase[11] - 1, kClassBase[11], uint32_t{kMaxBlockBytes}}) {
        const unsigned c = distance_class(distance);
        CHECK(c < kNumClasses && kClassBase[c] <= distance && distance < kClassBase[c + 1]);
    }
    CHECK(kClassBase[kNumClasses] > kMaxBlockBytes);
    CHECK(15 + kEscapeBase[16] > kMaxBlockBytes);
}

std::string copying_text(std::mt19937& random, size_t size) {
    std::string text;
    const uint32_t num_letters = 1 + below(random, 200);
    while (text.size() < size) {
        if (random() % 3 == 0 && !text.empty()) {
            const size_t begin = random() % 4 == 0 ? text.size() - 1 - random() % std::min<size_t>(text.size(), 20)
                                                   : random() % text.size();
            const size_t length = 1 + random() % (random() % 10 == 0 ? 2000 : 30);
            for (size_t i = 0; i < length; ++i) text += text[begin + i];
        } else {
            text += static_cast<char>(random() % num_letters);
        }
    }
    text.resize(size);
    return text;
}

std::vector<std::string> texts() {
    std::mt19937 random(2);
    std::vector<std::string> all = {"", "a", "ab", "aaa", std::string(200000, 'x'), std::string(100000, '\0') + "z"};
    std::string pairs;
    for (int i = 0; i < 65536; ++i) pairs += {static_cast<char>(i >> 8), static_cast<char>(i)};
    all.push_back(pairs);
    std::string noise;
    for (int i = 0; i < 70000; ++i) noise += static_cast<char>(random());
    all.push_back(noise);
    for (int i = 0; i < 60; ++i) all.push_back(copying_text(random, random() % 3000));
    for (int i = 0; i < 20; ++i) all.push_back(random_text(random, 2000));
    all.push_back(copying_text(random, 200000));
    return all;
}

void test_blocks() {
    for (const std::string& text : texts()) {
        if (text.empty()) continue;
        const ByteVector block = bytes_of(text);
        for (unsigned level = 1; level <= kMaxLzLevel; level += text.size() > 3000 ? 4 : 2) {
            const ByteVector coded = lz_encode(block, level);
            ByteVector out(block.size());
            CHECK(lz_decode(coded, out).ok());
            CHECK(out == block);
        }
    }
}

// Sequences that no parse of ours makes: any that reproduce the block are to work.
void test_any_sequences() {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        ByteVector block;
        std::vector<Sequence> sequences;
        while (sequences.size() < 40) {
            Sequence sequence = {below(random, random() % 8 == 0 ? 300 : 4), 0, 0};
            if (block.empty()) ++sequence.num_literals;
            for (uint32_t i = 0; i < sequence.num_literals; ++i) block.push_back(static_cast<uint8_t>(random() % 7));
            sequence.distance = 1 + below(random, static_cast<uint32_t>(block.size()));
            sequence.length = kMinLength + below(random, random() % 8 == 0 ? 5000 : 20);
            for (uint32_t i = 0; i < sequence.length; ++i) block.push_back(block[block.size() - sequence.distance]);
            sequences.push_back(sequence);
        }
        sequences.push_back({0, 0, 0});
        const ByteVector coded = lz_encode_sequences(block, sequences, random() % 2 == 0);
        ByteVector out(block.size());
        CHECK(lz_decode(coded, out).ok());
        CHECK(out == block);
    }
}

ByteVector compressed(Bytes bytes, size_t num_threads, unsigned level = 5, Method method = Method::kLz) {
    auto out = compress(bytes, {method, level, kMinBlockBytes, std::nullopt, num_threads});
    CHECK(out.ok());
    return out.ok() ? *out : ByteVector();
}

void test_archives() {
    std::mt19937 random(4);
    for (const std::string& text : texts()) {
        const ByteVector bytes = bytes_of(text);
        const ByteVector archive = compressed(bytes, 1);
        CHECK(compressed(bytes, 3) == archive);
        for (const size_t num_threads : {1u, 2u, 5u}) {
            auto out = decompress(archive, bytes.size(), num_threads);
            CHECK(out.ok() && *out == bytes);
        }
        if (!bytes.empty()) CHECK(!decompress(archive, bytes.size() - 1).ok());

        auto writer = ArchiveWriter::make({Method::kLz, 5, kMinBlockBytes, bytes.size(), 2});
        ArchiveReader reader(bytes.size(), 2);
        ByteVector pieces, back;
        const auto read = [&](const ByteVector& piece) {
            pieces.insert(pieces.end(), piece.begin(), piece.end());
            for (size_t i = 0; i < piece.size();) {
                const size_t count = std::min<size_t>(piece.size() - i, 1 + random() % (random() % 2 ? 3 : 30000));
                auto out = reader.append(Bytes(piece).subspan(i, count));
                CHECK(out.ok());
                if (out.ok()) back.insert(back.end(), out->begin(), out->end());
                i += count;
            }
        };
        for (size_t i = 0; i < bytes.size();) {
            const size_t count = std::min<size_t>(bytes.size() - i, random() % (random() % 2 ? 10 : 100000));
            read(writer->append(Bytes(bytes).subspan(i, count)));
            i += count;
        }
        auto end = writer->finish();
        CHECK(end.ok());
        read(*end);
        CHECK(reader.finish().ok());
        CHECK(pieces == archive);
        CHECK(back == bytes);
    }
}

// A changed archive never decodes, whatever was done to it.
void test_damage() {
    std::mt19937 random(5);
    const std::string text = copying_text(random, 150000) + std::string(66000, 'b');
    const ByteVector bytes = bytes_of(text);
    const ByteVector archive = compressed(bytes, 1);
    const ByteVector other = compressed(bytes_of(copying_text(random, bytes.size())), 1);
    const auto refused = [&](const ByteVector& damaged) {
        auto out = decompress(damaged, bytes.size() + 1000, 1);
        CHECK(!out.ok());
        CHECK(out.ok() || out.status().code == StatusCode::kMalformed);
    };
    for (int round = 0; round < 1000; ++round) {
        ByteVector damaged = archive;
        const size_t at = random() % (round % 3 == 0 ? 100 : damaged.size());
        switch (random() % 5) {
            case 0: damaged[at] = static_cast<uint8_t>(damaged[at] ^ 1u << random() % 8); break;
            case 1: damaged[at] = static_cast<uint8_t>(damaged[at] + 1 + random() % 255); break;
            case 2: damaged.resize(at); break;
            case 3: damaged.insert(damaged.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(random())); break;
            default: damaged.erase(damaged.begin() + static_cast<ptrdiff_t>(at)); break;
        }
        if (damaged != archive) refused(damaged);
    }
    ByteVector damaged = archive;
    damaged.push_back(0);
    refused(damaged);
    damaged = archive;
    damaged.insert(damaged.end(), archive.begin(), archive.end());
    refused(damaged);

    // Whole records: their boundaries, from their sizes.
    const auto boundaries = [](const ByteVector& of) {
        std::vector<size_t> all = {kHeaderBytes};
        while (of[all.back()] != 0) {
            const size_t at = all.back();
            size_t coded = 0;
            for (size_t i = 0; i < 4; ++i) coded |= size_t{of[at + 5 + i]} << (8 * i);
            all.push_back(at + 17 + coded);
        }
        all.push_back(of.size());
        return all;
    };
    const auto record = [&](const ByteVector& of, size_t i) {
        const auto at = boundaries(of);
        return ByteVector(of.begin() + static_cast<ptrdiff_t>(at[i]), of.begin() + static_cast<ptrdiff_t>(at[i + 1]));
    };
    const size_t num_records = boundaries(archive).size() - 1;
    CHECK_EQ(num_records, 5u);
    const auto built = [&](const std::vector<ByteVector>& records) {
        ByteVector all(archive.begin(), archive.begin() + kHeaderBytes);
        for (const ByteVector& part : records) all.insert(all.end(), part.begin(), part.end());
        return all;
    };
    const auto r = [&](size_t i) { return record(archive, i); };
    CHECK(built({r(0), r(1), r(2), r(3), r(4)}) == archive);
    refused(built({r(1), r(0), r(2), r(3), r(4)}));
    refused(built({r(0), r(2), r(3), r(4)}));
    refused(built({r(0), r(1), r(1), r(2), r(3), r(4)}));
    refused(built({r(0), r(1), r(2), r(4)}));
    refused(built({r(0), r(1), r(2), r(3)}));
    refused(built({r(4)}));
    refused(built({record(other, 0), r(1), r(2), r(3), r(4)}));
    refused(built({r(0), r(1), r(2), r(3), record(other, 4)}));
}

// Coded blocks from nowhere decode to something or are refused.
void test_nonsense() {
    std::mt19937 random(6);
    const ByteVector block = bytes_of(copying_text(random, 3000));
    const ByteVector good = lz_encode(block, 5);
    for (int round = 0; round < 2000; ++round) {
        ByteVector coded = good;
        if (round % 2 == 0) {
            coded.resize(random() % 200);
            for (uint8_t& byte : coded) byte = static_cast<uint8_t>(random());
            if (!coded.empty()) coded[0] &= 1;
            for (size_t i = 1; i < std::min<size_t>(coded.size(), 5); ++i) coded[i] %= 40;
        } else {
            for (int i = 0; i < 3; ++i) coded[random() % coded.size()] = static_cast<uint8_t>(random());
        }
        ByteVector out(random() % 4000);
        (void)lz_decode(coded, out);
    }
}

void test_settings() {
    CHECK(!ArchiveWriter::make({static_cast<Method>(0), 0, 0, std::nullopt, 1}).ok());
    CHECK(!ArchiveWriter::make({static_cast<Method>(77), 0, 0, std::nullopt, 1}).ok());
    CHECK(!ArchiveWriter::make({Method::kLz, kMaxLzLevel + 1, 0, std::nullopt, 1}).ok());
    CHECK(!ArchiveWriter::make({Method::kLz, 1, kMinBlockBytes - 1, std::nullopt, 1}).ok());
    CHECK(!ArchiveWriter::make({Method::kLz, 1, kMaxBlockBytes + 1, std::nullopt, 1}).ok());
    auto writer = ArchiveWriter::make({Method::kLz, 1, 0, 3, 1});
    CHECK(writer.ok());
    CHECK(writer->append(as_bytes("ab")).size() == kHeaderBytes);
    CHECK(!writer->finish().ok());
    auto header = read_header(compressed(as_bytes("abc"), 1));
    CHECK(header.ok() && header->level == 5 && header->content_bytes == 3u && header->block_bytes == kMinBlockBytes);
}

}  // namespace
}  // namespace fastcompress::archive

int main(int argc, char** argv) {
    using namespace fastcompress::archive;
    test_archives();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    test_xxh64();
    test_nibble_models();
    test_fields();
    test_blocks();
    test_any_sequences();
    test_damage();
    test_nonsense();
    test_settings();
    return fastcompress::testing::report();
}
