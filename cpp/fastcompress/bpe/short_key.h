// A byte string of up to 15 bytes as two words, so that comparing and hashing it takes a few instructions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/hash.h"

namespace fastcompress::bpe {

struct ShortKey {
    static constexpr size_t kMaxBytes = 15;

    uint64_t low;   // bytes 0 to 7
    uint64_t high;  // bytes 8 to 14, and the length, at least 1, in the most significant byte: never zero

    bool operator==(const ShortKey& other) const { return low == other.low && high == other.high; }
    // Different in every process, as hash_bytes is.
    uint64_t hash() const { return mix64(low ^ std::rotl(high * 0x9e3779b97f4a7c15u, 32) ^ kHashSeed); }

    // Of 1 to kMaxBytes bytes.
    static ShortKey of(Bytes bytes) {
        uint8_t padded[16] = {};
        std::memcpy(padded, bytes.data(), bytes.size());
        return of_readable(padded, bytes.size());
    }
    // The same where 16 bytes may be read from `data` on, whatever the size: a few instructions without a branch. For a
    // size above kMaxBytes the result means nothing.
    static ShortKey of_readable(const uint8_t* data, size_t size) {
        uint64_t low;
        uint64_t high;
        std::memcpy(&low, data, 8);
        std::memcpy(&high, data + 8, 8);
        const size_t row = size < kMaxBytes + 1 ? size : kMaxBytes + 1;
        return {low & kLowMasks[row], (high & kHighMasks[row]) | uint64_t{row} << 56};
    }
    // A hash of more than kMaxBytes bytes, different from every key of fewer.
    static ShortKey of_long(Bytes bytes) {
        const uint8_t* data = bytes.data();
        const size_t size = bytes.size();
        const auto word = [&](size_t i) {
            uint64_t value;
            std::memcpy(&value, data + i, 8);
            return value;
        };
        uint64_t low = kHashSeed ^ size;
        for (size_t i = 0; i + 16 < size; i += 16) low = fold_multiply(low ^ word(i), kHashSeed ^ word(i + 8));
        low = fold_multiply(low ^ word(size - 16), kHashSeed ^ word(size - 8));
        return {low, low << 7 | uint64_t{0xff} << 56};
    }

  private:
    // Byte i of the text is byte i of the word on little-endian machines. On others the masks would keep other bytes,
    // so they are not supported (no platform of ours is one).
    static_assert(std::endian::native == std::endian::little);
    static constexpr uint64_t kLowMasks[17] = {
        0,     0xff,  0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
        ~0ull, ~0ull, ~0ull,  ~0ull,    ~0ull,      ~0ull,        ~0ull,          ~0ull,
        0};
    static constexpr uint64_t kHighMasks[17] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
        0};
};

}  // namespace fastcompress::bpe
