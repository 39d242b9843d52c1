// A BPE vocabulary: the bytes of each token id, and the order in which adjacent pairs of tokens merge.
//
// There are two kinds, by the source of that order:
//   kMerges  a list of merges (left, right) -> result in the order they were learned; the rank of a merge is its index.
//            Vocabularies trained with this library are of this kind.
//   kRanks   tokens only, as in the rank files of tiktoken: two adjacent tokens merge if their concatenation is a token,
//            and the lowest resulting id goes first. A pretoken that is itself a token becomes that token, even if merges
//            do not produce it.
// Example: with the tokens a, b, c = 0, 1, 2, the list (a, b) -> 3, (3, c) -> 4 has the ranks 0 and 1 and makes 4 of
// "abc". Both kinds become one table from pairs of ids to ranks, so there is one encoder.
//
// Invariants: each of the 256 single bytes is a token, so every byte string can be encoded. With a list of merges, the
// 13 bytes that never occur in UTF-8 may be missing if U+FFFD is a token; they encode as it does. The result of a merge
// has the bytes of its left and its right token. Added tokens (added_tokens.h) take no part in merges. A Vocabulary is
// immutable, and any number of threads may share it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "fastcompress/bpe/vocabulary/added_tokens.h"
#include "fastcompress/bpe/vocabulary/key_filter.h"
#include "fastcompress/bpe/vocabulary/pair_table.h"
#include "fastcompress/bpe/vocabulary/short_key.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/hash.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"
#include "fastcompress/common/status.h"
#include "fastcompress/pretokenizer/pretokenizer.h"

namespace fastcompress::bpe {

inline constexpr TokenId kNoToken = 0xffffffffu;

enum class MergeOrder : uint8_t { kMerges = 0, kRanks = 1 };

struct Merge {
    TokenId left;
    TokenId right;
    TokenId result;
};

enum class Normalizer : uint8_t { kNone = 0, kNfc = 1 };

// Everything that defines a vocabulary: plain data, not yet checked.
struct VocabularySpec {
    MergeOrder order = MergeOrder::kMerges;
    pretokenizer::Pattern pattern = pretokenizer::Pattern::kCl100k;
    std::vector<std::string> tokens;  // by id; empty if the id is unused or belongs to an added token only
    std::vector<Merge> merges;        // in rank order; empty for kRanks
    // In any order; a Vocabulary sorts them by id. An id with several texts decodes to the first.
    std::vector<AddedToken> added_tokens;
    bool ignore_merges = false;  // for kMerges: a pretoken that is a token becomes that token, as with kRanks
    bool prefix_space = false;   // a stretch of text that does not begin with a space gets one
    Normalizer normalizer = Normalizer::kNone;
    // If not empty, a description of how callers split texts into pretokens. The core does not interpret it, and
    // `pattern` is not used.
    std::string custom_pattern;
    std::string metadata;  // UTF-8 that is stored for callers and has no effect on ids
};

inline constexpr size_t kMaxUnusedIds = size_t{1} << 18;
// Rank files list no merges. They are found by splitting every token at every position, which is quadratic in its
// length.
inline constexpr size_t kMaxRankTokenBytes = 1024;

class Vocabulary {
  public:
    // Checks the invariants above, and that the texts of added tokens are distinct, not empty, and UTF-8. Takes time in
    // proportion to the bytes of tokens and of results of merges; with kRanks, to the bytes of tokens times their
    // length.
    static Result<Vocabulary> make(VocabularySpec spec);

    // Returns the file of the vocabulary (FORMAT.md); parse() reads it. The last 32 bytes are the SHA-256 of the rest.
    // Uses version 1 if that can express the vocabulary, so that its fingerprint stays the same.
    std::vector<uint8_t> serialize() const;
    static Result<Vocabulary> parse(Bytes blob);

    size_t size() const { return offsets_.size() - 1; }  // ids are < size(); some may be unused
    // The bytes of a token, added tokens included; empty for an unused id. Requires id < size(). kReadableBytes can be
    // read from their beginning, so that short tokens can be copied without regard to their length.
    static constexpr size_t kReadableBytes = 16;
    Bytes token_bytes(TokenId id) const { return Bytes(arena_).subspan(offsets_[id], offsets_[id + 1] - offsets_[id]); }
    // Whether the id is an ordinary token, neither unused nor an added token. Requires id < size().
    bool is_ordinary(TokenId id) const { return !is_added_[id] && !token_bytes(id).empty(); }
    TokenId byte_token(uint8_t byte) const { return byte_tokens_[byte]; }
    // The rank of the merge of two tokens, or kNoRank if they do not merge. merge_result() is the result of a rank.
    uint32_t find_rank(TokenId left, TokenId right) const { return pairs_.find(pairs_.locate(left, right)); }
    const PairTable& pairs() const { return pairs_; }
    // find_rank() for the tokens of two bytes, from a separate table: half of all lookups are for these few pairs.
    uint32_t find_byte_rank(uint8_t left, uint8_t right) const { return byte_pairs_[left << 8 | right]; }
    TokenId merge_result(uint32_t rank) const { return is_rank_id_ ? rank : spec_.merges[rank].result; }
    // The ordinary token with exactly these bytes, or else the added token; kNoToken if there is none.
    TokenId token_id(Bytes bytes) const;
    // The token with the bytes of the pretoken, if the pretoken encodes to that token alone; otherwise kNoToken.
    TokenId whole_pretoken(Bytes pretoken) const;
    TokenId whole_pretoken(ShortKey pretoken) const {
        const ShortToken& slot = short_tokens_[find_short_slot(pretoken)];
        return slot.key.high != 0 ? slot.whole : kNoToken;
    }
    // Returns false for most pretokens for which whole_pretoken() is kNoToken, and only for such. Cheaper.
    bool may_be_whole_pretoken(ShortKey pretoken) const { return token_filter_.may_contain(pretoken); }
    [[gnu::always_inline]] void prefetch_whole_pretoken(ShortKey pretoken) const {
        fastcompress::prefetch(&short_tokens_[pretoken.hash() & (short_tokens_.size() - 1)]);
    }

    // The spec given to make(), with its added tokens sorted.
    VocabularySpec spec() const;
    MergeOrder order() const { return spec_.order; }
    pretokenizer::Pattern pattern() const { return spec_.pattern; }
    const std::vector<Merge>& merges() const { return spec_.merges; }
    const std::vector<AddedToken>& added_tokens() const { return spec_.added_tokens; }
    bool ignore_merges() const { return spec_.ignore_merges; }
    bool prefix_space() const { return spec_.prefix_space; }
    bool has_all_bytes() const { return has_all_bytes_; }
    Normalizer normalizer() const { return spec_.normalizer; }
    const std::string& custom_pattern() const { return spec_.custom_pattern; }
    const std::string& metadata() const { return spec_.metadata; }
    // Replaces `out` with the normalized text and returns true, or returns false if the text is normalized already.
    bool normalize(Bytes text, std::vector<uint8_t>& out) const;

  private:
    Vocabulary() = default;
    Status check_added_tokens();
    Status check_normalized_texts() const;
    Status check_options() const;
    Status lay_out_tokens();
    Status index_tokens();
    Status index_merges();
    void index_rank_pairs();
    void index_byte_pairs();
    void index_whole_pretokens();
    bool all_are_whole() const { return spec_.order == MergeOrder::kRanks || spec_.ignore_merges; }
    TokenId find_token(Bytes bytes) const;
    TokenId insert_token(TokenId id);
    size_t find_long_slot(Bytes bytes) const;
    Status replace_missing_bytes();
    uint32_t format_version() const;

    VocabularySpec spec_;  // its tokens move to the arena
    std::vector<uint8_t> arena_;
    std::vector<uint32_t> offsets_;  // size() + 1
    std::array<TokenId, 256> byte_tokens_{};
    PairTable pairs_;
    std::vector<uint32_t> byte_pairs_;  // 2^16 ranks
    bool is_rank_id_ = false;           // with kRanks, the rank of a merge is the id of its result
    // The ordinary tokens by their bytes; of several with the same bytes, the first. Open addressing. Up to 15 bytes
    // are the key itself, so that a lookup is one memory access; longer tokens are compared in the arena.
    struct ShortToken {
        ShortKey key;
        TokenId id;
        TokenId whole;  // id, or kNoToken if encoding the bytes does not give the token
    };
    size_t find_short_slot(ShortKey key) const {
        size_t i = key.hash() & (short_tokens_.size() - 1);
        while (short_tokens_[i].key.high != 0 && !(short_tokens_[i].key == key)) {
            i = (i + 1) & (short_tokens_.size() - 1);
        }
        return i;  // the slot of the key, or the free slot where it belongs
    }
    HugeArray<ShortToken> short_tokens_{0};
    KeyFilter token_filter_;  // their keys
    std::vector<TokenId> long_tokens_;
    std::vector<bool> is_added_;       // by id: whether it belongs to an added token only
    std::vector<bool> is_whole_long_;  // by id of a token of more than 15 bytes: whether its bytes encode to it
    bool has_all_bytes_ = true;
};

}  // namespace fastcompress::bpe
