// The characters that stand for bytes in Hugging Face's byte-level vocabularies (GPT-2's).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fastcompress::bpe {

// Returns the code point for each byte: a printable Latin-1 character stands for itself, and the other bytes have
// U+0100, U+0101 ... in order. So the space is U+0120.
std::array<uint32_t, 256> byte_alphabet();

// Returns the bytes that a text in this alphabet stands for, or nullopt if it has another character.
std::optional<std::string> bytes_of_byte_alphabet(std::string_view text);

}  // namespace fastcompress::bpe
