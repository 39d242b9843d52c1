// BPE-dropout (Provilkov, Emelianenko and Voita, 2020): merges that are left out at random, so that a model in training
// sees a word cut in many ways.
//
// The rule, within each pretoken: begin with its bytes. Go through the pairs that merge, by rank and from left to right
// within a rank; each is skipped with probability p, and the first that is not is merged. Repeat, with every skipped
// pair a candidate again, until all are skipped or none is left. That is the paper's algorithm (drop each candidate with
// probability p, merge the best of the rest), as subword-nmt and tokenizers have it in their ways. A pretoken is not
// looked up as a whole.
//
// The random numbers are SplitMix64's, one stream a pretoken: which stream depends on the seed and on the offset of the
// pretoken in its text. So ids depend on (vocabulary, text, p, seed) only, whatever the machine and the threads.
#pragma once

#include <set>
#include <vector>

#include "fastcompress/bpe/encode/batch_encoder.h"
#include "fastcompress/bpe/encode/token_list.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// A text, or an ordinary stretch of one between special tokens.
struct DropoutText {
    Bytes bytes;     // size() <= kMaxTextBytes
    uint64_t seed;   // of the text
    uint64_t begin;  // where in the text the stretch begins, in bytes
    // Where its pretokens end: offsets that ascend to bytes.size(). Empty: cut it by the vocabulary's pattern.
    std::span<const uint64_t> ends = {};
};

// Encodes texts with dropout, one after the other, on one thread at a time. The vocabulary must outlive it.
class DropoutEncoder {
  public:
    // 0 <= dropout <= 1, taken as a multiple of 2^-53, rounded up.
    DropoutEncoder(const Vocabulary& vocabulary, double dropout);

    // Appends the ids of a text. O(n) on text; O(n log n / (1 - dropout)) for one pretoken of n bytes.
    void encode(const DropoutText& text, TokenBuffer& out);

    // Both merge a pretoken by the rule; `state` begins its stream of random numbers. by_scan: at most kMaxScanBytes.
    void merge_by_scan(Bytes pretoken, uint64_t state, TokenBuffer& out) const;
    void merge_by_order(Bytes pretoken, uint64_t state, TokenBuffer& out);
    static constexpr size_t kMaxScanBytes = 64;

  private:
    void encode_pretoken(Bytes pretoken, uint64_t state, TokenBuffer& out);
    bool skips(uint64_t& state) const;

    const Vocabulary& vocabulary_;
    uint64_t threshold_;  // a pair is skipped if 53 random bits are less than this
    TokenList tokens_;
    std::vector<uint32_t> ranks_;  // of the pair that begins at each position
    std::set<uint64_t> candidates_;
};

// Encodes texts[i] to tokens[offsets[i], offsets[i + 1]) on up to num_threads threads.
EncodedBatch encode_batch_with_dropout(const Vocabulary& vocabulary, std::span<const DropoutText> texts, double dropout,
                                       size_t num_threads);

}  // namespace fastcompress::bpe
