// A byte string of up to 15 bytes as two words, so that comparing and hashing it takes a few instructions.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/hash.h"

namespace fastcompress::bpe {

struct ShortKey {
    static constexpr size_t kMaxBytes = 15;

    uint64_t low;  // bytes 0 to 7
    // Bytes 8 to 14, then the length, 1 to 15, in four bits. So it is never zero. The upper four bits are always zero,
    // and free for users of keys.
    uint64_t high;

    bool operator==(const ShortKey& other) const { return low == other.low && high == other.high; }
    // A hash that differs from process to process, like hash_bytes().
    uint64_t hash() const { return mix64(low ^ std::rotl(high * 0x9e3779b97f4a7c15u, 32) ^ hash_seed()); }

    // Returns the key of 1 to kMaxBytes bytes, and reads no others. Words that overlap, rather than a copy: words read
    // where single bytes were just written would wait for those.
    static ShortKey of(Bytes bytes) {
        const uint8_t* const data = bytes.data();
        const size_t size = bytes.size();
        assert(1 <= size && size <= kMaxBytes);
        uint64_t low, high = uint64_t{size} << 56;
        if (size >= 8) {
            low = load<uint64_t>(data);
            if (size > 8) high |= load<uint64_t>(data + size - 8) >> (64 - 8 * (size - 8));
        } else if (size >= 4) {
            low = load<uint32_t>(data) | uint64_t{load<uint32_t>(data + size - 4)} << 8 * (size - 4);
        } else {
            low = data[0] | uint64_t{data[size / 2]} << 8 * (size / 2) | uint64_t{data[size - 1]} << 8 * (size - 1);
        }
        return {low, high};
    }
    // The same if 16 bytes can be read from `data` on, whatever the size: a few instructions without a branch. For a
    // size above kMaxBytes the result is meaningless.
    static ShortKey of_readable(const uint8_t* data, size_t size) {
        const auto row = static_cast<uint8_t>(size);
        return {load<uint64_t>(data) & kRows.low[row],
                (load<uint64_t>(data + 8) & kRows.high[row]) | kRows.length[row]};
    }
    // Returns a hash of more than kMaxBytes bytes as a key. It differs from all other keys, because its length is 0.
    static ShortKey of_long(Bytes bytes) {
        const uint8_t* data = bytes.data();
        const size_t size = bytes.size();
        const auto word = [&](size_t i) { return load<uint64_t>(data + i); };
        const uint64_t seed = hash_seed();
        uint64_t low = seed ^ size;
        for (size_t i = 0; i + 16 < size; i += 16) low = fold_multiply(low ^ word(i), seed ^ word(i + 8));
        low = fold_multiply(low ^ word(size - 16), seed ^ word(size - 8));
        return {low, low >> 9 | uint64_t{1} << 55};
    }

  private:
    // Big-endian machines are not supported: there the masks would select the wrong bytes.
    static_assert(std::endian::native == std::endian::little);
    // Masks by size. There are 256 entries, so that a byte can be the index without a check.
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

    template <class Word>
    static Word load(const uint8_t* data) {
        Word word;
        std::memcpy(&word, data, sizeof(word));
        return word;
    }
};

inline constexpr ShortKey::Rows ShortKey::kRows;

}  // namespace fastcompress::bpe
