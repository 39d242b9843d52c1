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
    // The same where 16 bytes may be read from `data` on, whatever the size: a few instructions without a branch. A
    // size above kMaxBytes gives too_long().
    static ShortKey of_readable(const uint8_t* data, size_t size) {
        uint64_t low;
        uint64_t high;
        std::memcpy(&low, data, 8);
        std::memcpy(&high, data + 8, 8);
        const size_t row = size < kMaxBytes + 1 ? size : kMaxBytes + 1;
        return {low & kLowMasks[row], (high & kHighMasks[row]) | uint64_t{row} << 56};
    }
    // What no byte string has as its key.
    static ShortKey too_long() { return {0, uint64_t{kMaxBytes + 1} << 56}; }

  private:
    // Byte i of the text is byte i of the word on little-endian machines. On others the masks would keep other bytes,
    // so they are not supported (no platform of ours is one).
    static_assert(std::endian::native == std::endian::little);
    static constexpr uint64_t kLowMasks[17] = {
        0,     0xff,  0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
        ~0ull, ~0ull, ~0ull,  ~0ull,    ~0ull,      ~0ull,        ~0ull,          ~0ull, 0};
    static constexpr uint64_t kHighMasks[17] = {
        0,    0,      0,        0,          0,            0,              0,                0, 0,
        0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0};
};

}  // namespace fastcompress::bpe
