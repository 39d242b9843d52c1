// Bytes from anywhere as a codebook's file, with the checksum they claim and with the right one; what is accepted
// must write itself so, and encode and decode a text.
#include <algorithm>
#include <cstdlib>

#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/codebook_encoder.h"

namespace fastcompress::equal_info {
namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

void test_text(const Codebook& book, Bytes text) {
    std::vector<uint32_t> ids;
    encode(book.table(), text, 1, ids);
    const std::span<const uint32_t> span = ids;
    const auto size = book.decoded_bytes(span);
    expect(size.ok() && *size == text.size());
    std::vector<uint8_t> back(text.size());
    expect(book.decode(span, back));
    expect(std::ranges::equal(back, text));
    for (size_t i = 0; i + 1 < ids.size(); ++i) expect(!book.extends(ids[i], book.string(ids[i + 1])[0]));
}

void test_file(Bytes file, Bytes text) {
    const auto book = Codebook::parse(file);
    if (!book.ok()) return;
    expect(std::ranges::equal((*book).serialize(), file));
    test_text(*book, text);
    std::vector<uint8_t> long_text;
    while (long_text.size() < 20000 && !text.empty()) long_text.insert(long_text.end(), text.begin(), text.end());
    test_text(*book, long_text);
}

}  // namespace
}  // namespace fastcompress::equal_info

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fastcompress;
    using equal_info::Codebook;
    const Bytes input(data, size);
    equal_info::test_file(input, input);

    std::vector<uint8_t> sealed(data, data + size);
    const Sha256Digest digest = sha256(sealed);
    sealed.insert(sealed.end(), digest.begin(), digest.end());
    equal_info::test_file(sealed, input);

    // A codebook that is one: a walk in a trie, from byte to byte, until there are enough nodes.
    std::vector<std::string> strings;
    for (int byte = 0; byte < 256; ++byte) strings.emplace_back(1, static_cast<char>(byte));
    for (size_t i = 0; i < size && strings.size() < 511; ++i) {
        const std::string longer = strings[data[i] % strings.size()] + static_cast<char>(data[size - 1 - i]);
        if (std::ranges::find(strings, longer) == strings.end()) strings.push_back(longer);
    }
    if (const auto book = Codebook::from_strings(9, "", strings); book.ok()) equal_info::test_text(*book, input);
    return 0;
}
