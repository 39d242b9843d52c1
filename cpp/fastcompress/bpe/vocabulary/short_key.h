// A byte string of up to 15 bytes as two words, so that comparing and hashing it takes a few instructions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/hash.h"

namespace fastcompress::bpe {

struct ShortKey {
    static constexpr size_t kMaxBytes = 15;

    uint64_t low;  // bytes 0 to 7
    // Bytes 8 to 14, then four bits for the length, at least 1. So it is never zero, and the upper four bits, always zero,
    // are free for whoever keeps keys.
    uint64_t high;

    bool operator==(const ShortKey& other) const { return low == other.low && high == other.high; }
    // Different in every process, as hash_bytes is.
    uint64_t hash() const { return mix64(low ^ std::rotl(high * 0x9e3779b97f4a7c15u, 32) ^ hash_seed()); }

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
        const auto row = static_cast<uint8_t>(size);
        return {low & kRows.low[row], (high & kRows.high[row]) | kRows.length[row]};
    }
    // A hash of more than kMaxBytes bytes, different from every key of fewer: those have a length.
    static ShortKey of_long(Bytes bytes) {
        const uint8_t* data = bytes.data();
        const size_t size = bytes.size();
        const auto word = [&](size_t i) {
            uint64_t value;
            std::memcpy(&value, data + i, 8);
            return value;
        };
        const uint64_t seed = hash_seed();
        uint64_t low = seed ^ size;
        for (size_t i = 0; i + 16 < size; i += 16) low = fold_multiply(low ^ word(i), seed ^ word(i + 8));
        low = fold_multiply(low ^ word(size - 16), seed ^ word(size - 8));
        return {low, low >> 9 | uint64_t{1} << 55};
    }

  private:
    // Byte i of the text is byte i of the word on little-endian machines. On others the masks would keep other bytes,
    // so they are not supported (no platform of ours is one).
    static_assert(std::endian::native == std::endian::little);
    // By size, so many that a byte of it can be the index.
    struct Rows {
        std::array<uint64_t, 256> low = {}, high = {}, length = {};
        constexpr Rows() {
            for (size_t size = 1; size <= kMaxBytes; ++size) {
                low[size] = size < 8 ? (uint64_t{1} << 8 * size) - 1 : ~uint64_t{0};
                high[size] = size > 8 ? (uint64_t{1} << 8 * (size - 8)) - 1 : 0;
                length[size] = uint64_t{size} << 56;
            }
        }
    };
    static const Rows kRows;
};

inline constexpr ShortKey::Rows ShortKey::kRows;

}  // namespace fastcompress::bpe
