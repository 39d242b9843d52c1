// Memory that runs out, at every allocation of sessions with arithmetic coding, the context mixer, equal-info codebooks,
// greedy dictionaries and archives: everything is as it was before the call that failed. (Others: test_allocation_bpe.cc and _lz77.cc.)
#include "failing_allocator.h"
#include "fastcompress/archive/container.h"
#include "fastcompress/arithmetic/adaptive_frequencies.h"
#include "fastcompress/arithmetic/bulk_coder.h"
#include "fastcompress/context_mixer/context_mixer.h"
#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/codebook_encoder.h"
#include "fastcompress/equal_info/codebook_trainer.h"
#include "fastcompress/equal_info/windows.h"
#include "fastcompress/greedy_dictionary/canonical_states.h"
#include "fastcompress/greedy_dictionary/dictionary.h"
#include "fastcompress/greedy_dictionary/trainer.h"

namespace fastcompress {
namespace {

using testing::bytes_of_numbers;
using testing::Outcome;
using testing::Session;
using testing::walk_outcome;
using testing::wordy_text;
using ByteVector = std::vector<uint8_t>;

ByteVector copy_of(Bytes bytes) {
    return {bytes.begin(), bytes.end()};
}
void append(ByteVector& to, Bytes bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

// --- Arithmetic coding ---

// A coder and an adaptive model that learns from what is coded. What a coder holds is seen by what it would end as.
struct Coding {
    arithmetic::RangeEncoder encoder;
    arithmetic::AdaptiveFrequencies model{{300}};
    ByteVector taken;
    std::vector<ByteVector> observe() {
        const auto snapshot = encoder.snapshot();
        std::vector<ByteVector> states = {taken, bytes_of_numbers(model.cumulative())};
        states.push_back(bytes_of_numbers(
            std::vector<uint64_t>{snapshot.low, snapshot.range, snapshot.num_bytes, encoder.num_bits_if_finished()}));
        return states;
    }
};

void test_range_encoder() {
    std::mt19937 random(5);
    std::vector<uint32_t> symbols(70000);
    for (uint32_t& symbol : symbols) symbol = static_cast<uint32_t>(random() % 300 * (random() % 300) / 300);
    std::vector<uint32_t> table(301);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint32_t>((65536 - 300) * i / 300 + i);
    table.back() = 65536;
    const std::span<const uint32_t> all(symbols);
    Session<Coding> session{"RangeEncoder", [] { return Coding(); }, {}};
    auto& steps = session.steps;
    for (size_t i = 0; i < 200; ++i) {
        steps.push_back([i](Coding& to) { to.encoder.encode(static_cast<uint32_t>(i), 2, 9); });
        steps.push_back([i](Coding& to) { to.encoder.encode_bit(i % 3 == 0, 50); });
    }
    steps.push_back([&](Coding& to) { CHECK(arithmetic::BulkEncoder(to.encoder).encode(all, table, 16)); });
    steps.push_back([&](Coding& to) { to.model.encode(all.first(5000), to.encoder); });
    steps.push_back([](Coding& to) {
        ByteVector settled = to.encoder.take_settled();
        to.taken = std::move(settled);
    });
    steps.push_back([&](Coding& to) { to.model.encode(all.subspan(5000, 9000), to.encoder); });
    steps.push_back([](Coding& to) { to.taken = to.encoder.finish(); });
    session.walk();
}

void test_arithmetic_decoding() {
    std::vector<uint32_t> symbols(5000);
    for (size_t i = 0; i < symbols.size(); ++i) symbols[i] = static_cast<uint32_t>(i * i % 50);
    walk_outcome("AdaptiveFrequencies", [&] {
        arithmetic::RangeEncoder encoder;
        arithmetic::AdaptiveFrequencies({50}).encode(symbols, encoder);
        const ByteVector code = encoder.finish();
        arithmetic::RangeDecoder decoder(code);
        std::vector<uint32_t> back(symbols.size());
        CHECK(arithmetic::AdaptiveFrequencies({50}).decode(decoder, back).ok() && back == symbols);
        return code;
    });
    const std::vector<float> weights(1000, 0.5f);
    walk_outcome("Quantizer", [&] {
        arithmetic::Quantizer quantizer(weights.size(), 18);
        CHECK(quantizer.set_row(weights.data()).ok());
        std::vector<uint32_t> cumulative(weights.size() + 1);
        quantizer.cumulative(cumulative.data());
        std::vector<uint32_t> out(3000);
        arithmetic::RangeEncoder encoder;
        CHECK(arithmetic::BulkEncoder(encoder).encode(std::span<const uint32_t>(out), cumulative, 18));
        const ByteVector code = encoder.finish();
        arithmetic::RangeDecoder decoder(code);
        CHECK(arithmetic::BulkDecoder(decoder).decode(std::span(out), cumulative, 18));
        return code;
    });
}

// --- Context mixer ---

struct Mixing {
    context_mixer::ContextMixer mixer;
    arithmetic::RangeEncoder encoder;
    ByteVector out;
    std::vector<ByteVector> observe() const {
        return {mixer.serialize(), out, bytes_of_numbers(std::vector<uint64_t>{encoder.num_bits_if_finished()})};
    }
};

void test_context_mixer() {
    const std::string text = wordy_text(6, 400);
    const Bytes bytes = as_bytes(text);
    const context_mixer::MixerParams params{12, 10, 0};
    Session<Mixing> session{"ContextMixer", [&] { return Mixing{context_mixer::ContextMixer(params), {}, {}}; }, {}};
    session.steps = {
        [&](Mixing& to) { to.mixer.update(bytes); },
        [&](Mixing& to) { to.mixer.encode(bytes, to.encoder); },
        [&](Mixing& to) { to.out = to.mixer.encode(bytes.first(100)); },
        [&](Mixing& to) { to.out = *to.mixer.decode(to.out, 100); },
        [](Mixing& to) { to.mixer.reset(); },
        [](Mixing& to) { to.mixer = context_mixer::ContextMixer(to.mixer); },
        [](Mixing& to) { to.mixer = std::move(*context_mixer::ContextMixer::parse(to.mixer.serialize())); },
        [](Mixing& to) { to.mixer.freeze(); },
        [&](Mixing& to) { to.mixer.encode(bytes, to.encoder); },
        [&](Mixing& to) { to.out = to.mixer.encode(bytes); },
        [&](Mixing& to) { to.out = *to.mixer.decode(to.out, bytes.size()); },
        [](Mixing& to) { to.out = to.encoder.finish(); },
    };
    session.walk();

    context_mixer::ContextMixer frozen(params);
    frozen.update(bytes);
    frozen.freeze();
    walk_outcome("WindowCoder", [&] {
        const equal_info::WindowCoder coder(frozen, 32);
        const ByteVector windows = coder.encode(bytes.first(500));
        CHECK(coder.decode(windows, 500)->bytes == copy_of(bytes.first(500)));
        return windows;
    });
    walk_outcome("encode_document", [&] {
        const ByteVector code = equal_info::encode_document(frozen, bytes.first(500));
        CHECK(equal_info::decode_document(frozen, code, 500)->bytes == copy_of(bytes.first(500)));
        return code;
    });
}

// --- Equal-info codebooks ---

void test_codebook() {
    const std::string text = wordy_text(7, 1500);
    std::string long_text;
    while (long_text.size() < 3 * 65536) long_text += text;
    const equal_info::Document document{as_bytes(text), {}};
    for (const size_t num_threads : {1u, 2u}) {
        walk_outcome(
            "train_codebook",
            [&] {
                const auto nodes = equal_info::train_codebook({&document, 1}, {9, 2, num_threads, false});
                return equal_info::Codebook::make(9, "", *nodes)->serialize();
            },
            3);
    }
    const auto nodes = equal_info::train_codebook({&document, 1}, {9, 2, 1, true});
    const auto book = equal_info::Codebook::make(9, "", *nodes);
    const ByteVector file = book->serialize();
    std::vector<std::string> strings;
    for (uint32_t id = 0; id < book->size(); ++id) strings.emplace_back(as_chars(book->string(id)));
    walk_outcome("Codebook::parse", [&] { return equal_info::Codebook::parse(file)->serialize(); });
    walk_outcome("Codebook::from_strings",
                 [&] { return equal_info::Codebook::from_strings(9, "", strings)->serialize(); });

    struct Ids {
        std::vector<uint32_t> ids;
        const std::vector<uint32_t>& observe() const { return ids; }
    };
    const std::vector<uint64_t> ends = {70000, 70001, long_text.size()};
    for (const size_t num_threads : {1u, 2u}) {
        Session<Ids>{"equal_info::encode",
                     [] {
                         return Ids{{1, 2, 3}};
                     },
                     {[&](Ids& to) { equal_info::encode(book->table(), as_bytes(long_text), num_threads, to.ids); },
                      [&](Ids& to) {
                          equal_info::encode_within(book->table(), as_bytes(long_text), ends, num_threads, to.ids);
                      }},
                     64}
            .walk();
    }
}

// --- Greedy dictionaries ---

void test_greedy_dictionary() {
    using greedy_dictionary::CanonicalStates;
    using greedy_dictionary::Dictionary;
    const std::string text = wordy_text(7, 1500);
    std::string long_text;
    while (long_text.size() < 3 * 65536) long_text += text;
    const std::vector<Bytes> documents = {as_bytes(text), as_bytes(long_text)};
    for (const size_t num_threads : {1u, 2u}) {
        walk_outcome(
            "train_dictionary",
            [&] {
                return Dictionary::from_strings(
                           *greedy_dictionary::train_dictionary(documents, {300, 2, num_threads, true}))
                    ->serialize();
            },
            3);
    }
    const auto strings = *greedy_dictionary::train_dictionary(documents, {300, 1, 1, true});
    const auto dictionary = std::make_shared<const Dictionary>(*Dictionary::from_strings(strings));
    const ByteVector file = dictionary->serialize();
    walk_outcome("Dictionary::parse", [&] { return Dictionary::parse(file)->serialize(); });
    walk_outcome("CanonicalStates", [&] {
        const CanonicalStates states(dictionary);
        ByteVector row(states.row_bytes());
        states.write_row(static_cast<uint32_t>(states.size() - 1), row);
        return row;
    });
    struct Ids {
        std::vector<uint32_t> ids;
        const std::vector<uint32_t>& observe() const { return ids; }
    };
    for (const size_t num_threads : {1u, 2u}) {
        Session<Ids>{"Dictionary::encode",
                     [] {
                         return Ids{{1, 2, 3}};
                     },
                     {[&](Ids& to) { dictionary->encode(as_bytes(long_text), num_threads, to.ids); }},
                     64}
            .walk();
    }
}

// --- Archives ---

struct Writing {
    archive::ArchiveWriter writer;
    ByteVector out;
    const ByteVector& observe() const { return out; }
};
struct Reading {
    archive::ArchiveReader reader;
    ByteVector out;
    const ByteVector& observe() const { return out; }
};

// What a writer or reader holds shows in all that comes out of it after the failure.
void test_archive(archive::Method method, size_t num_threads) {
    const size_t block_bytes = archive::kMinBlockBytes;
    const uint64_t num_dense = method == archive::Method::kLz ? 20 : 8;
    std::string text = wordy_text(8, 15000);
    text.resize(method == archive::Method::kLz ? 3 * block_bytes / 2 : block_bytes + 2000);
    const archive::WriterSettings settings{method, 1, block_bytes, std::nullopt, num_threads};
    const auto append_result = [](ByteVector& out, const ByteVector& more) { append(out, more); };
    Session<Writing> writing{"ArchiveWriter",
                             [&] {
                                 return Writing{*archive::ArchiveWriter::make(settings), ByteVector()};
                             },
                             {},
                             num_dense};
    // What comes out goes where there is room for it: it is the writer's own allocations that fail.
    const std::vector<size_t> cuts = {0, 10, 40000, text.size() - 100, text.size()};
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const Bytes piece = as_bytes(text).subspan(cuts[i], cuts[i + 1] - cuts[i]);
        writing.steps.push_back([piece, append_result](Writing& to) {
            to.out.reserve(size_t{1} << 19);
            append_result(to.out, to.writer.append(piece));
        });
    }
    writing.steps.push_back([append_result](Writing& to) { append_result(to.out, *to.writer.finish()); });
    writing.walk();

    const ByteVector file = *archive::compress(as_bytes(text), settings);
    Session<Reading> reading{"ArchiveReader",
                             [&] {
                                 return Reading{archive::ArchiveReader(text.size(), num_threads), ByteVector()};
                             },
                             {},
                             num_dense};
    for (size_t begin = 0; begin < file.size();) {
        const size_t size = std::min(file.size() - begin, begin < 100 ? size_t{50} : file.size() / 3);
        const Bytes piece = Bytes(file).subspan(begin, size);
        reading.steps.push_back([piece, append_result](Reading& to) {
            to.out.reserve(size_t{1} << 19);
            append_result(to.out, *to.reader.append(piece));
        });
        begin += size;
    }
    reading.steps.push_back([](Reading& to) { CHECK(to.reader.finish().ok()); });
    reading.walk();
}

}  // namespace
}  // namespace fastcompress

int main() {
    using namespace fastcompress;
    test_range_encoder();
    test_arithmetic_decoding();
    test_context_mixer();
    test_codebook();
    test_greedy_dictionary();
    for (const auto method : {archive::Method::kLz, archive::Method::kCm}) {
        for (const size_t num_threads : {1u, 2u}) test_archive(method, num_threads);
    }
    return testing::report();
}
