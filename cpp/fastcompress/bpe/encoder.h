// BPE encoding, exactly: within each pretoken, merge the adjacent pair of lowest rank, the leftmost one first, until
// none merges.
//
// A pretoken that is one token is found by one look-up. Otherwise short pretokens are merged by scanning for the
// lowest rank (quadratic, but in at most kMaxScanBytes) and long ones with a heap, so no input is quadratic: encode()
// is O(n log n) in the worst case (one pretoken of n bytes) and O(n) on text.
//
// Results depend on the vocabulary and the bytes only. All functions are thread-safe; a Scratch belongs to one thread.
#pragma once

#include <vector>

#include "fastcompress/bpe/vocabulary.h"

namespace fastcompress::bpe {

// Positions within a text are 32-bit.
inline constexpr size_t kMaxTextBytes = 0xfffffff0u;

// Buffers that encoding reuses, so that it does not allocate once they have grown.
struct Scratch {
    struct Candidate {
        uint32_t rank;
        uint32_t position;
        TokenId result;
    };
    std::vector<TokenId> ids;
    std::vector<uint32_t> previous, next;
    std::vector<Candidate> heap;
};

// Appends the ids of a text to `out`. Text that looks like a special token is ordinary text. text.size() <=
// kMaxTextBytes.
void encode(const Vocabulary& vocabulary, Bytes text, Scratch& scratch, std::vector<TokenId>& out);

// Appends the ids of one pretoken, by merges alone (no look-up of the whole pretoken).
void encode_by_merges(const Vocabulary& vocabulary, Bytes pretoken, Scratch& scratch, std::vector<TokenId>& out);

// Encodes texts[i] to tokens[offsets[i], offsets[i + 1]) on up to num_threads threads.
struct EncodedBatch {
    std::vector<TokenId> tokens;
    std::vector<uint64_t> offsets;  // texts.size() + 1
};
EncodedBatch encode_batch(const Vocabulary& vocabulary, std::span<const Bytes> texts, size_t num_threads);

// The bytes that ids spell, or kInvalidData for an id that is out of range or unused. O(tokens + bytes).
Result<std::vector<uint8_t>> decode(const Vocabulary& vocabulary, std::span<const TokenId> tokens);

}  // namespace fastcompress::bpe
