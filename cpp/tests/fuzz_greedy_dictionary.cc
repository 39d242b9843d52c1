// Bytes from anywhere as a dictionary's file, with the checksum they claim and with the right one, and as the strings
// of a dictionary; what is accepted must write itself so, encode and decode a text, and find the encoding legal.
#include <algorithm>
#include <cstdlib>

#include "fastcompress/greedy_dictionary/canonical_states.h"
#include "fastcompress/greedy_dictionary/dictionary.h"

namespace fastcompress::greedy_dictionary {
namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

void test_text(const std::shared_ptr<const Dictionary>& dictionary, const CanonicalStates& states, Bytes text) {
    std::vector<uint32_t> ids;
    dictionary->encode(text, 1, ids);
    const std::span<const uint32_t> span = ids;
    const auto size = dictionary->decoded_bytes(span);
    expect(size.ok() && *size == text.size());
    std::vector<uint8_t> back(text.size());
    expect(dictionary->decode(span, back));
    expect(std::ranges::equal(back, text));
    std::vector<uint32_t> before(ids.size() + 1);
    expect(states.states_before(CanonicalStates::kInitial, span, before).ok());
    std::vector<uint8_t> row(states.row_bytes());
    for (size_t i = 0; i < std::min<size_t>(ids.size(), 50); ++i) {
        states.write_row(before[i], row);
        expect(row[ids[i] / 8] >> ids[i] % 8 & 1);
    }
}

void test_dictionary(Result<Dictionary> made, Bytes text) {
    if (!made.ok()) return;
    const auto dictionary = std::make_shared<const Dictionary>(std::move(*made));
    const CanonicalStates states(dictionary);
    test_text(dictionary, states, text);
    std::vector<uint8_t> long_text;
    while (long_text.size() < 20000 && !text.empty()) long_text.insert(long_text.end(), text.begin(), text.end());
    test_text(dictionary, states, long_text);
}

void test_file(Bytes file, Bytes text) {
    Result<Dictionary> made = Dictionary::parse(file);
    if (made.ok()) expect(std::ranges::equal(made->serialize(), file));
    test_dictionary(std::move(made), text);
}

}  // namespace
}  // namespace fastcompress::greedy_dictionary

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fastcompress;
    const Bytes input(data, size);
    greedy_dictionary::test_file(input, input);

    std::vector<uint8_t> sealed(data, data + size);
    const Sha256Digest digest = sha256(sealed);
    sealed.insert(sealed.end(), digest.begin(), digest.end());
    greedy_dictionary::test_file(sealed, input);

    // Strings that are pieces of the input: a byte says how long, then come the bytes.
    std::vector<std::string> strings;
    for (int byte = 0; byte < 256; ++byte) strings.emplace_back(1, static_cast<char>(byte));
    for (size_t i = 0; i < size;) {
        const size_t length = std::min<size_t>(data[i], size - i - 1);
        const std::string text(as_chars(input.subspan(i + 1, length)));
        if (length > 1 && std::ranges::find(strings, text) == strings.end()) strings.push_back(text);
        i += 1 + length;
    }
    greedy_dictionary::test_dictionary(greedy_dictionary::Dictionary::from_strings(std::move(strings)), input);
    return 0;
}
