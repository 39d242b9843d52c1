#include "fastcompress/bpe/vocabulary/byte_alphabet.h"

#include <algorithm>

#include "fastcompress/common/bytes.h"
#include "fastcompress/unicode/utf8.h"

namespace fastcompress::bpe {

std::array<uint32_t, 256> byte_alphabet() {
    std::array<uint32_t, 256> alphabet;
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const bool is_printable = (byte > ' ' && byte <= '~') || (byte > 0xa0 && byte != 0xad);
        alphabet[byte] = is_printable ? byte : next++;
    }
    return alphabet;
}

std::optional<std::string> bytes_of_byte_alphabet(std::string_view text) {
    const std::array<uint32_t, 256> alphabet = byte_alphabet();
    const Bytes encoded = as_bytes(text);
    std::string bytes;
    for (size_t i = 0; i < encoded.size();) {
        const unicode::DecodedCodePoint decoded = unicode::decode_utf8(encoded.data(), i, encoded.size());
        const auto found = std::ranges::find(alphabet, decoded.value);
        if (found == alphabet.end()) return std::nullopt;
        bytes += static_cast<char>(found - alphabet.begin());
        i += decoded.length;
    }
    return bytes;
}

}  // namespace fastcompress::bpe
