// The settings of a parse, and its tokens. FORMAT.md defines their meaning.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fastcompress/common/large_block_allocator.h"
#include "fastcompress/common/status.h"

namespace fastcompress::lz77 {

// Positions in a text, distances and lengths are 32-bit.
inline constexpr size_t kMaxTextBytes = 0xfffffff0u;
inline constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max();
inline constexpr uint32_t kMaxMinLength = 64;

enum class ParseRule : uint8_t { kGreedy = 0, kLazy = 1 };

struct Params {
    uint32_t window = 65536;    // largest distance of a match, at least 1, or kUnlimited
    uint32_t min_length = 4;    // smallest length of a match, 1 to kMaxMinLength
    uint32_t max_length = 258;  // largest length of a match, at least min_length, or kUnlimited
    uint32_t depth = 32;        // largest number of candidates at a position, at least 1, or kUnlimited
    ParseRule rule = ParseRule::kGreedy;

    bool operator==(const Params&) const = default;
};

// Checks the settings. kInvalidArgument if one is out of range.
Status check(const Params& params);

enum class TokenKind : uint8_t { kLiteral = 0, kMatch = 1 };

struct Token {
    TokenKind kind;
    uint32_t value;   // the byte of a literal, the distance of a match
    uint32_t length;  // the number of bytes that the token stands for; 1 for a literal

    static Token literal(uint8_t byte) { return {TokenKind::kLiteral, byte, 1}; }
    static Token match(uint32_t distance, uint32_t length) { return {TokenKind::kMatch, distance, length}; }
    bool operator==(const Token&) const = default;
};

// Tokens as columns, as Python and the models take them.
struct TokenColumns {
    template <class T>
    using Column = std::vector<T, LargeBlockAllocator<T>>;

    Column<uint8_t> kinds;
    Column<uint32_t> values;
    Column<uint32_t> lengths;

    TokenColumns() = default;
    // Copies columns of equal lengths.
    TokenColumns(std::span<const uint8_t> some_kinds, std::span<const uint32_t> some_values,
                 std::span<const uint32_t> some_lengths) {
        append(some_kinds, some_values, some_lengths);
    }

    size_t size() const { return kinds.size(); }
    Token operator[](size_t i) const { return {static_cast<TokenKind>(kinds[i]), values[i], lengths[i]}; }
    void reserve(size_t size) {
        kinds.reserve(size);
        values.reserve(size);
        lengths.reserve(size);
    }
    void push(const Token& token) {
        kinds.push_back(static_cast<uint8_t>(token.kind));
        values.push_back(token.value);
        lengths.push_back(token.length);
    }
    // Appends columns of equal lengths.
    void append(std::span<const uint8_t> more_kinds, std::span<const uint32_t> more_values,
                std::span<const uint32_t> more_lengths) {
        kinds.insert(kinds.end(), more_kinds.begin(), more_kinds.end());
        values.insert(values.end(), more_values.begin(), more_values.end());
        lengths.insert(lengths.end(), more_lengths.begin(), more_lengths.end());
    }
};

}  // namespace fastcompress::lz77
