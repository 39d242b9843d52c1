// One hash of what every coder writes for the same made-up data. It must come out alike from every compiler, at every
// level of optimization, with every kind of vector code, and on every machine: builds that differ are built to run
// this.
#include <cstdio>
#include <string>

#include "check.h"
#include "fastcompress/archive/container.h"
#include "fastcompress/arithmetic/bulk_coder.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/codebook_encoder.h"
#include "fastcompress/equal_info/codebook_trainer.h"
#include "fastcompress/equal_info/windows.h"

using namespace fastcompress;
using namespace fastcompress::arithmetic;
using namespace fastcompress::context_mixer;
using namespace fastcompress::equal_info;

namespace {

// Words of few letters, numbers, records of a table and noise, by a generator of our own: the library's distributions
// differ.
std::vector<uint8_t> made_up(size_t num_bytes) {
    uint64_t state = 12345;
    const auto next = [&](uint32_t limit) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>(state >> 33) % limit;
    };
    static const char* const kWords[] = {"the ", "of ",  "and ",   "window", "coder ", "of a ", "\\n",
                                         "an ",  "byte", "token ", ". ",     "0123",   "\\t",   "frequency "};
    std::vector<uint8_t> data;
    while (data.size() < num_bytes) {
        const uint32_t kind = next(40);
        if (kind < 36) {
            for (const char* c = kWords[next(14) * next(14) / 14]; *c; ++c) data.push_back(static_cast<uint8_t>(*c));
        } else if (kind < 39) {
            for (uint32_t row = 0; row < 8; ++row) data.insert(data.end(), {uint8_t(row), 7, uint8_t(next(4)), 0, 255});
        } else {
            for (int i = 0; i < 20; ++i) data.push_back(static_cast<uint8_t>(next(256)));
        }
    }
    return data;
}

std::string hex(const Sha256Digest& digest) {
    std::string text;
    for (const uint8_t byte : digest) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", byte);
        text += digits;
    }
    return text;
}

std::string hash_of_range_coder(Bytes data) {
    std::vector<float> weights(256);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0f / static_cast<float>(3 + i * i % 71);
    Quantizer quantizer(256, 16);
    CHECK(quantizer.set_row(weights.data()).ok());
    std::vector<uint32_t> table(257);
    quantizer.cumulative(table.data());
    RangeEncoder encoder;
    CHECK(BulkEncoder(encoder).encode<uint8_t>(data, table, 16));
    std::vector<uint8_t> message = encoder.finish();
    for (const uint32_t boundary : table) message.insert(message.end(), {uint8_t(boundary), uint8_t(boundary >> 8)});
    return hex(sha256(message));
}

std::string hash_of_models(Bytes data) {
    MixerParams params;
    params.log2_table_bytes = 18;
    params.reset_interval = 24;
    ContextMixer mixer(params);
    std::vector<uint8_t> all = mixer.encode(data);
    mixer.update(data);
    mixer.freeze();
    const std::vector<uint8_t> file = mixer.serialize();
    const std::vector<uint8_t> windows = WindowCoder(mixer, 40).encode(data.first(5000));
    const std::vector<uint8_t> document = encode_document(mixer, data.first(5000));
    for (const auto& part : {file, windows, document}) all.insert(all.end(), part.begin(), part.end());
    return hex(sha256(all));
}

std::string hash_of_codebook(Bytes data) {
    const Document document = {data, {}};
    const auto nodes = train_codebook({&document, 1}, {.bits = 11, .num_rounds = 8, .num_threads = 2});
    CHECK(nodes.ok());
    auto book = Codebook::make(11, "", *nodes);
    CHECK(book.ok());
    std::vector<uint32_t> ids;
    encode(book->table(), data, 2, ids);
    std::vector<uint8_t> all = book->serialize();
    for (const uint32_t id : ids) all.insert(all.end(), {static_cast<uint8_t>(id), static_cast<uint8_t>(id >> 8)});
    return hex(sha256(all));
}

std::string hash_of_archives(Bytes data) {
    Sha256 hash;
    for (const archive::Method method : {archive::Method::kLz, archive::Method::kCm}) {
        for (const unsigned level : {1u, 6u, 9u}) {
            const auto blob = archive::compress(data, {method, level, 1 << 16, std::nullopt, 2});
            CHECK(blob.ok());
            hash.update(*blob);
            const auto back = archive::decompress(*blob, data.size(), 2);
            CHECK(back.ok() && std::ranges::equal(*back, data));
        }
    }
    return hex(hash.finish());
}

void check_hash(const char* what, const std::string& hash, const char* expected) {
    std::printf("%s %s\n", what, hash.c_str());
    CHECK_EQ(hash, std::string(expected));
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<uint8_t> data = made_up(100'000);
    check_hash("data", hex(sha256(data)), "ffe76dc8e3833017e2bdd9fe075c7d43b1ebe6d814f20c69d5f71c5019bfd172");
    check_hash("codebook", hash_of_codebook(data), "fc1f22ce0176cb70420ad49fd3c719691c1eced9147b35bf670f55e59ac3aefb");
    check_hash("archives", hash_of_archives(data), "b4309546d0822d90c6230e56a10d3ce3786f28a6094988ee0109fab0e5cd0e61");
    if (testing::wants_threads_alone(argc, argv)) return testing::report();
    check_hash("range coder", hash_of_range_coder(data),
               "5dae596a560ab32dd226045940c059bc8a5390ca8da8d8c28c9b6c818a7639d9");
    check_hash("models", hash_of_models(Bytes(data).first(30'000)),
               "7e793a63dce0b78f62d4bc5f3f7c96843100a2c63ddf690c7fa7242f206063b5");
    return testing::report();
}
