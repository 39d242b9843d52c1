// The contexts, as 64-bit keys: which of the bytes before the next one decide its prediction.
//
// At the start of a document or window nothing is known, and what is known grows byte by byte. A context of k bytes of
// which only n < k are known consists of these n bytes and of n itself. So it is a context of its own, "the n bytes
// from the start", and models learn how windows begin as they learn anything else.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fastcompress::context_mixer {

inline constexpr int kNumContexts = 9;
// The first contexts are the last 1, 2, 3, 4 and 6 bytes.
inline constexpr int kNumOrders = 5;
inline constexpr uint32_t kOrders[kNumOrders] = {1, 2, 3, 4, 6};

// The bytes around the next one, if the bytes form a table of records.
struct Record {
    uint32_t length = 0;  // length of a record in bytes; 0: no records
    uint32_t column = 0;  // column of the next byte
    uint8_t above = 0;    // the byte one record before the next
    uint8_t after = 0;    // the byte after that
    uint8_t above2 = 0;   // the byte two records before the next
};

// What is known of a document so far. Small, and cheap to copy and to reset.
struct Cursor {
    uint64_t last = 0;           // the last eight bytes, the very last lowest; zeros from before the start
    uint32_t num_known = 0;      // number of those bytes that exist, 0 to 8
    uint32_t word = 0;           // hash of the letters since the last other byte; 0 if there are none
    uint32_t previous_word = 0;  // hash of the word before
    bool is_cut = true;          // nothing but letters since the start: the word may have begun before it

    void append(uint8_t byte) {
        last = last << 8 | byte;
        num_known = std::min(num_known + 1, 8u);
        const bool is_upper = byte >= 'A' && byte <= 'Z';
        const bool is_letter = is_upper || (byte >= 'a' && byte <= 'z') || byte >= 128;
        if (is_letter) {
            word = (word + byte + (is_upper ? 33 : 1)) * 0x2f0b4c47u;
        } else {
            if (word != 0) previous_word = word;
            word = 0;
            is_cut = false;
        }
    }

    void context_keys(const Record& record, uint64_t (&keys)[kNumContexts]) const {
        for (uint32_t i = 0; i < kNumOrders; ++i) {
            const uint32_t order = kOrders[i];
            keys[i] = key(i, last & ((uint64_t{1} << (8 * order)) - 1), known(order));
        }
        keys[5] = key(5, word, is_cut ? 1 : 0);
        keys[6] = key(6, uint64_t{previous_word} << 32 | word, is_cut ? 1 : 0);
        if (record.length == 0) {
            keys[7] = key(7, last & 0xff00, known(2));
            keys[8] = key(8, last & 0xff000000, known(4));
        } else {
            const uint64_t table = record.above | uint64_t{record.length} << 40;
            keys[7] = key(7, table | uint64_t{record.after} << 8 | (last & 0xff) << 16, kInTable);
            keys[8] = key(8, table | uint64_t{record.above2} << 8 | uint64_t{record.column} << 16, kInTable);
        }
    }

  private:
    static constexpr uint32_t kInTable = 15;  // a variant of its own

    uint32_t known(uint32_t num_wanted) const { return std::min(num_known, num_wanted); }

    // `variant` says how much of the context is known, 0 to 15.
    static uint64_t key(uint32_t context, uint64_t value, uint32_t variant) {
        const uint64_t tag = uint64_t{context} << 4 | variant;
        uint64_t hash = (value + tag) * 0xd6e8feb86659fd93u;
        hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
        return (hash ^ hash >> 32) + (tag << 32);
    }
};

}  // namespace fastcompress::context_mixer
