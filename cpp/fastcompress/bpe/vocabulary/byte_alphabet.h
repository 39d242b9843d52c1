// The characters that stand for bytes in Hugging Face's byte-level vocabularies (GPT-2's).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fastcompress::bpe {

// The code point that stands for each byte: printable Latin-1 for itself, the rest from U+0100 on in order.
std::array<uint32_t, 256> byte_alphabet();

// The bytes that a text in that alphabet stands for, or nothing if a character is not of it.
std::optional<std::string> bytes_of_byte_alphabet(std::string_view text);

}  // namespace fastcompress::bpe
