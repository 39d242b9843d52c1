// Encodes text to BPE token ids.
//
// Definition. The vocabulary's pattern splits the text into pretokens, and each is encoded by itself: start with its
// bytes and merge the adjacent pair of lowest rank, the leftmost if there are several, until no pair merges.
//   rank  merge              a b c a b    rank 0: "b c", although "a b" begins further left
//   0     b + c  -> id 256   a bc a b     rank 1: the last two
//   1     a + b  -> id 257   a bc ab      rank 2: the first two
//   2     a + bc -> id 258   abc ab       no pair merges: ids 258, 257
// (With ranks or ignore_merges, a pretoken that is itself a token is that token: vocabulary.h.)
//
// Algorithm. Each of these ways gives exactly the ids of the definition:
//   1. A cache holds the ids of recent pretokens (pretoken_cache.h).
//   2. A pretoken that encodes to a single token is found by one lookup in the vocabulary.
//   3. Others of up to 64 bytes are merged several at a time, so that their memory accesses overlap (merge_lanes.h).
//   4. Longer ones are merged in windows or with a queue by rank (long_merge.h), so no input takes quadratic time.
// Cost: O(n) on text; O(n log n) at worst, for one pretoken of n bytes. Ids depend on vocabulary and bytes only.
//
// Pretokens are looked up in batches (encode_batch.cc), so that waits for memory overlap. The ids of most are found at
// once and stand one after the other in a buffer that stays in the processor's cache; what goes between them is listed.
// After a chunk of 64 KiB the pretokens that nothing knows yet are merged side by side, and all ids are copied to the
// output in their order (finish_chunk.cc).
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "fastcompress/bpe/encode/long_merge.h"
#include "fastcompress/bpe/encode/merge_lanes.h"
#include "fastcompress/bpe/encode/pretoken_cache.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// Positions within a text are 32-bit.
inline constexpr size_t kMaxTextBytes = 0xfffffff0u;

// Encodes texts, on one thread at a time. Its cache of pretokens affects speed only; it takes less than 1 MiB for short
// texts and at most 64 MiB in all. The vocabulary must outlive the encoder. If a call throws std::bad_alloc, its output
// is as before the call, and the encoder can be used again.
class Encoder {
  public:
    explicit Encoder(const Vocabulary& vocabulary)
        : vocabulary_(vocabulary),
          cache_(vocabulary.size()),
          lanes_(MergeLanes<kShortLaneBytes>(vocabulary), MergeLanes<kMiddleLaneBytes>(vocabulary),
                 MergeLanes<kMaxLaneBytes>(vocabulary)),
          long_(vocabulary) {}

    // Appends the ids of `text` to `out`. Special tokens count as ordinary text. Requires text.size() <= kMaxTextBytes.
    void encode(Bytes text, TokenBuffer& out);

    // Same for several texts, which is faster for short ones. Sets ends[i] to out.size() after texts[i].
    void encode(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends);

    // Enlarges the cache to 8 MiB at once and adds those of the first 32,768 tokens that have at most 15 bytes.
    // encode() does so after 512 KiB of text; further calls do nothing. Takes about 2 ms, or up to 30 ms if the system
    // is slow to provide the memory.
    void reserve_large_cache();

    // Appends the ids of one pretoken, for callers that split the text themselves.
    void encode_pretoken(Bytes pretoken, TokenBuffer& out);

    // Appends the ids of one pretoken of at least one byte by merges alone: neither cache nor lookup of the whole.
    void encode_by_merges(Bytes pretoken, TokenBuffer& out);

  private:
    // The most bytes of a pretoken for each kind of lanes. Longer pretokens are rare, and merged one by one.
    static constexpr uint32_t kShortLaneBytes = 16, kMiddleLaneBytes = 32, kMaxLaneBytes = 64;
    // The number of ids copied at a time: of those between two insertions, and of an insertion.
    static constexpr size_t kManyIds = 16;
    static constexpr size_t kFewIds = 8;

    // Consecutive pretokens.
    struct Batch {
        static constexpr size_t kMaxSize = 256;
        const uint8_t* base;
        uint32_t first_begin;
        std::span<const uint32_t> ends;  // pretoken i is [base + begin(i), base + ends[i])
        std::array<ShortKey, kMaxSize> keys;
        std::array<PretokenCache::Set*, kMaxSize> sets;
        // A pretoken whose ids are not in an entry of its own set.
        struct Miss {
            uint32_t index;   // of the pretoken in the batch
            uint32_t offset;  // in found_, where its ids go
            const PretokenCache::Entry* entry;
            bool may_be_token;  // no entry is known, and the pretoken may be a token
        };
        std::array<Miss, kMaxSize> misses;
        uint32_t begin(size_t i) const { return i > 0 ? ends[i - 1] : first_begin; }
        Bytes pretoken(size_t i) const { return {base + begin(i), ends[i] - begin(i)}; }
    };
    void encode_found(const pretokenizer::PretokenFinder& found, Bytes text);
    void prepare_batch(size_t num_bytes);
    uint32_t prepare_readable(size_t count);
    void prepare_long_pretokens();
    template <int kIdBits>
    void emit_hits();
    void find_misses(std::span<Batch::Miss> misses);
    void resolve_misses(std::span<Batch::Miss> misses);

    // What goes between the ids in found_: ids in inserted_, the end of a text, or an unknown pretoken's ids.
    struct Insertion {
        static constexpr uint32_t kTextEnd = ~uint32_t{0};
        static constexpr uint32_t kUnknown = kTextEnd - 1;
        uint32_t offset;   // in found_
        uint32_t num_ids;  // or one of the values above
        uint32_t first;    // in inserted_; of an unknown pretoken, in unknown_
    };
    // A pretoken of the chunk that neither the cache nor the vocabulary knows.
    struct Unknown {
        Bytes pretoken;
        ShortKey key;
        PretokenCache::Set* set;
        size_t insertion;
    };
    void encode_texts(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends);
    void begin_chunk();
    uint64_t* finish_chunk(TokenBuffer& out, uint64_t* ends);
    void merge_unknown();
    template <class Lanes>
    void merge_in(Lanes& lanes, std::span<Unknown* const> pretokens);
    void remember(const Unknown& unknown, std::span<const TokenId> ids);

    TokenId find_whole(Bytes pretoken, ShortKey key) const;
    void look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);
    void encode_unknown(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);

    const Vocabulary& vocabulary_;
    PretokenCache cache_;
    bool has_large_cache_ = false;
    size_t num_bytes_seen_ = 0;
    std::tuple<MergeLanes<kShortLaneBytes>, MergeLanes<kMiddleLaneBytes>, MergeLanes<kMaxLaneBytes>> lanes_;
    std::array<std::vector<Unknown*>, 3> to_merge_;  // by lanes_
    Batch batch_;
    // Of the chunk.
    TokenBuffer found_, inserted_;
    std::vector<Insertion> insertions_;
    std::vector<Unknown> unknown_;
    LongMerger long_;
};

}  // namespace fastcompress::bpe
