// Token ids side by side in 128 bits, so that those of most pretokens stand beside their key in the cache: 8 of 16 bits
// each, 7 of 18, or 4 of 32, whichever is the least width that holds every id of the vocabulary.
//
// Of 18 bits the first four are the low bits of four words, so that these, which are enough nearly always, are unpacked by
// one instruction. The 14 bits above those in the first three words are the low bits of the other three ids, whose upper
// four bits each are in the last word.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/targets.h"

namespace fastcompress::bpe {

struct PackedIds {
    static constexpr size_t kMax = 8;  // of any width

    uint32_t words[4];

    static constexpr int bits_for(size_t num_ids) {
        return num_ids <= size_t{1} << 16 ? 16 : num_ids <= size_t{1} << 18 ? 18 : 32;
    }

    // At most 128 / bits of them, each below 2^bits.
    static PackedIds pack(std::span<const TokenId> ids, int bits) {
        PackedIds packed{};
        for (size_t i = 0; i < ids.size(); ++i) {
            if (bits == 16) {
                packed.words[i / 2] |= ids[i] << 16 * (i % 2);
            } else if (i < 4) {
                packed.words[i] |= ids[i];
            } else {
                packed.words[i - 4] |= ids[i] << 18;
                packed.words[3] |= ids[i] >> 14 << (18 + 4 * (i - 4));
            }
        }
        return packed;
    }

    // How many of them unpack_first() writes.
    template <int kBits>
    static constexpr size_t kNumFirst = kBits == 16 ? 8 : 4;
    template <int kBits>
    FASTCOMPRESS_INLINED void unpack_first(TokenId* out) const {
        if constexpr (kBits == 16) {
            uint16_t ids[kMax];
            std::memcpy(ids, words, sizeof ids);
            for (size_t i = 0; i < kMax; ++i) out[i] = ids[i];
        } else {
            uint32_t ids[4];  // a copy: for all the compiler knows, `out` may be these words
            std::memcpy(ids, words, sizeof ids);
            for (size_t i = 0; i < 4; ++i) out[i] = kBits == 18 ? ids[i] & 0x3ffff : ids[i];
        }
    }
    // Writes kMax ids, of which the first ones are those that were packed.
    template <int kBits>
    FASTCOMPRESS_INLINED void unpack(TokenId* out) const {
        unpack_first<kBits>(out);
        if constexpr (kBits == 18) {
            for (uint32_t i = 0; i < 3; ++i) out[4 + i] = words[i] >> 18 | (words[3] >> 18 >> 4 * i & 15) << 14;
        }
    }
    void unpack(int bits, TokenId* out) const {
        if (bits == 16) return unpack<16>(out);
        if (bits == 18) return unpack<18>(out);
        unpack<32>(out);
    }
};

}  // namespace fastcompress::bpe
