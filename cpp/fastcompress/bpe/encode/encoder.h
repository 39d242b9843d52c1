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
// Pretokens are looked up in batches (encode_batch.cc), so that waits for memory overlap. Those that the cache does not
// know yet are left out of the output at first; after a chunk of 64 KiB they are merged side by side and put in
// (merge_pending.cc).
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

// Encodes texts, on one thread at a time. Its cache of pretokens affects speed only; it takes less than 1 MiB for short
// texts and at most 64 MiB in all. The vocabulary must outlive the encoder. If a call throws std::bad_alloc, its output
// is as before the call, and the encoder can be used again.
class Encoder {
  public:
    explicit Encoder(const Vocabulary& vocabulary)
        : vocabulary_(vocabulary),
          cache_(vocabulary.size()),
          lanes_(vocabulary),
          wide_lanes_(vocabulary),
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
    // Longer pretokens are rare, and merged one by one.
    static constexpr uint32_t kMaxLaneBytes = 32;
    static constexpr uint32_t kMaxWideLaneBytes = 64;
    // The number of ids copied at a time: of those between two pretokens whose ids are elsewhere, and of one pretoken.
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
            uint32_t offset;  // of its ids among the ids that were found at once
            const PretokenCache::Entry* entry;
            bool may_be_token;  // no entry is known, and the pretoken may be a token
        };
        std::array<Miss, kMaxSize> misses;
        uint32_t begin(size_t i) const { return i > 0 ? ends[i - 1] : first_begin; }
        Bytes pretoken(size_t i) const { return {base + begin(i), ends[i] - begin(i)}; }
    };
    void encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out);
    void prepare_batch(size_t num_bytes);
    uint32_t prepare_readable(size_t count);
    void prepare_long_pretokens();
    template <int kIdBits>
    void emit_hits(TokenBuffer& out);
    void find_misses(std::span<Batch::Miss> misses);
    void emit_misses(size_t num_misses, size_t num_inline, TokenBuffer& out);

    // A pretoken of the current chunk that the cache does not know yet, or the end of a text.
    struct PendingPretoken {
        Bytes pretoken = {};  // empty: the end of a text
        ShortKey key = {};
        PretokenCache::Set* set = nullptr;
        size_t offset = 0;        // of its ids among the known ids of the chunk
        uint32_t merged = 0;      // offset of the first of its ids in merged_, once it is merged
        uint32_t num_merged = 0;  // number of its ids; 0: not merged
        bool is_end() const { return pretoken.empty(); }
    };
    void encode_texts(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends);
    uint64_t* flush_pending(TokenBuffer& out, uint64_t* ends);
    uint64_t* emit_pending(TokenBuffer& out, uint64_t* ends);
    void merge_pending();
    void remember(PendingPretoken& pending, std::span<const TokenId> ids);

    TokenId find_whole(Bytes pretoken, ShortKey key) const;
    void look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);
    void encode_unknown(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out);

    const Vocabulary& vocabulary_;
    PretokenCache cache_;
    bool has_large_cache_ = false;
    size_t num_bytes_seen_ = 0;
    MergeLanes<kMaxLaneBytes> lanes_;
    MergeLanes<kMaxWideLaneBytes> wide_lanes_;
    Batch batch_;
    std::vector<PendingPretoken> pending_;  // of the chunk
    size_t num_unknown_ = 0;                // pretokens among them
    size_t chunk_begin_ = 0;                // index of the chunk's first id in the output
    std::vector<PendingPretoken*> to_merge_, to_merge_wide_;
    TokenBuffer merged_, known_;
    LongMerger long_;
};

}  // namespace fastcompress::bpe
