// BPE encoding, exactly: within each pretoken, merge the adjacent pair of lowest rank, the leftmost one first, until
// none merges.
//
// Most pretokens were seen lately: a cache gives their ids. Of the rest, one that is a token is found by one look-up.
// Others are merged: short ones several at a time (merge_lanes.h), long ones in windows or with a queue by rank
// (long_merge.h), so no input is quadratic: encode() is O(n log n) in the worst case (one pretoken of n bytes) and O(n)
// on text.
//
// Results depend on the vocabulary and the bytes only.
#pragma once

#include <array>
#include <vector>

#include "fastcompress/bpe/encode/long_merge.h"
#include "fastcompress/bpe/encode/merge_lanes.h"
#include "fastcompress/bpe/encode/pretoken_cache.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// Positions within a text are 32-bit.
inline constexpr size_t kMaxTextBytes = 0xfffffff0u;

// Encodes texts, one after the other, on one thread at a time. It remembers what pretokens it has seen encode to,
// which makes it faster and nothing else: less than 1 MiB for short texts, at most 64 MiB in all. The vocabulary must
// outlive it.
class Encoder {
  public:
    explicit Encoder(const Vocabulary& vocabulary)
        : vocabulary_(vocabulary),
          cache_(vocabulary.size()),
          lanes_(vocabulary),
          wide_lanes_(vocabulary),
          long_(vocabulary) {}

    // Appends the ids of a text to `out`. Text that looks like a special token is ordinary text. text.size() <=
    // kMaxTextBytes.
    void encode(Bytes text, TokenBuffer& out);

    // The same for several texts, which is faster for short ones; ends[i] is out.size() after texts[i].
    void encode(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends);

    // Makes the cache as large as megabytes of text need it, and fills it with the first tokens of the vocabulary. Takes some
    // 3 ms (up to 60 where the system was slow to find the memory) and 16 MiB, once; an encoder that has had much to do does it unasked.
    void prepare_for_much();

    // Appends the ids of one pretoken, for a caller who has split the text by rules of its own.
    void encode_pretoken(Bytes pretoken, TokenBuffer& out);

    // Appends the ids of one pretoken, by merges alone (no look-up of the whole pretoken).
    void encode_by_merges(Bytes pretoken, TokenBuffer& out);

  private:
    // Longer ones are few, and merged one by one.
    static constexpr uint32_t kMaxLaneBytes = 32;
    static constexpr uint32_t kMaxWideLaneBytes = 64;
    void encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out);
    struct Batch {  // of pretokens that follow each other
        static constexpr size_t kMaxSize = 256;
        const uint8_t* base;
        uint32_t first_begin;
        std::span<const uint32_t> ends;  // pretoken i is [base + begin(i), base + ends[i])
        std::array<ShortKey, kMaxSize> keys;
        std::array<PretokenCache::Set*, kMaxSize> sets;
        struct Other {  // whose ids do not stand in an entry itself
            uint32_t index;
            uint32_t offset;  // where its ids belong among those that do
            const PretokenCache::Entry* entry;
            bool may_be_token;  // which the cache does not know yet
        };
        std::array<Other, kMaxSize> others;
        uint32_t begin(size_t i) const { return i > 0 ? ends[i - 1] : first_begin; }
        Bytes pretoken(size_t i) const { return {base + begin(i), ends[i] - begin(i)}; }
    };
    void prepare(size_t num_bytes);
    uint32_t prepare_readable(size_t count);
    template <int kIdBits>
    void emit_inline(TokenBuffer& out);
    void put_in_others(size_t num_others, size_t num_inline, TokenBuffer& out);
    // An unknown pretoken, or the end of a text.
    struct Place {
        Bytes pretoken = {};  // empty: the end of a text
        ShortKey key = {};
        PretokenCache::Set* set = nullptr;
        size_t offset = 0;         // among the known ids of the unit
        uint32_t learned = 0;      // where its ids are, once it is
        uint32_t num_learned = 0;  // 0: it is not
        bool is_end() const { return pretoken.empty(); }
    };
    uint64_t* settle(TokenBuffer& out, uint64_t* ends);
    void learn();
    TokenId find_whole(Bytes pretoken, ShortKey key) const;
    void look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);
    bool copy_known(Bytes pretoken, ShortKey key, const PretokenCache::Set* set, TokenBuffer& out) const;
    void encode_unknown(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);

    const Vocabulary& vocabulary_;
    PretokenCache cache_;
    bool is_prepared_ = false;
    size_t num_bytes_seen_ = 0;
    MergeLanes<kMaxLaneBytes> lanes_;
    MergeLanes<kMaxWideLaneBytes> wide_lanes_;
    Batch batch_;
    std::vector<Place> places_;  // of the unit: what is encoded but not settled
    size_t num_unknown_ = 0;     // of them
    size_t unit_begin_ = 0;      // its first id in the output
    std::vector<Place*> first_;
    std::vector<Place*> to_merge_, to_merge_wide_;
    TokenBuffer learned_, known_;
    LongMerger long_;
};

}  // namespace fastcompress::bpe
