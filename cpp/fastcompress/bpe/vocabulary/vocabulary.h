// A BPE vocabulary: what each token id spells, and which adjacent pairs of tokens merge in which order.
//
// Two kinds, by where the order of merges comes from:
//   kMerges  a list of merges (left, right) -> result in the order they were learned; the rank of a merge is its index.
//            Vocabularies trained here.
//   kRanks   tokens only, as in tiktoken's rank files: any two adjacent tokens whose concatenation is a token merge,
//            the lowest resulting id first; and a pretoken that is itself a token is that token, whether or not merges
//            reach it.
// Both become one table from pairs of ids to (rank, result), so there is one encoder.
//
// Invariants: each of the 256 single bytes is a token (so every byte string can be encoded), except that with a list
// of merges the 13 bytes that never occur in UTF-8 may be missing: they encode as U+FFFD does, which then is a token.
// The bytes of a merge's result are those of its left and right token; added tokens (added_tokens.h) take no part in
// merges. A Vocabulary is immutable: any number of threads may share it.
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
    std::vector<std::string> tokens;  // by id; empty where the id is unused or an added token's alone
    std::vector<Merge> merges;        // in rank order; empty for kRanks
    // In any order; a Vocabulary keeps them sorted by id. Of several texts with one id it spells the first.
    std::vector<AddedToken> added_tokens;
    bool ignore_merges = false;  // for kMerges: a pretoken that is a token is that token, as for kRanks
    bool prefix_space = false;   // a stretch of text that does not begin with a space gets one
    Normalizer normalizer = Normalizer::kNone;
    // If not empty, how callers cut texts into pretokens, in words that the core does not read; `pattern` plays no
    // part.
    std::string custom_pattern;
    std::string metadata;  // UTF-8 kept for others; it decides nothing
};

inline constexpr size_t kMaxUnusedIds = size_t{1} << 18;
// Rank files list no merges; they are found by cutting every token at every place, which is quadratic in a token's
// length.
inline constexpr size_t kMaxRankTokenBytes = 1024;

class Vocabulary {
  public:
    // Checks every invariant above, and that the added tokens' texts are distinct, not empty, and UTF-8. Takes time in
    // proportion to the bytes of tokens and of merges' results; for kRanks, to the bytes of tokens times the length of
    // a token.
    static Result<Vocabulary> make(VocabularySpec spec);

    // FORMAT.md. parse(serialize()) is the same vocabulary; the last 32 bytes are the SHA-256 of the rest. Version 1
    // if that can express the vocabulary, so that fingerprints stay what they were.
    std::vector<uint8_t> serialize() const;
    static Result<Vocabulary> parse(Bytes blob);

    size_t size() const { return offsets_.size() - 1; }  // ids are < size(); some may be unused
    // The bytes an id spells (an added token's text included); empty for an unused id. id < size(). From where they
    // begin kReadableBytes may be read, so that short tokens can be copied without a look at their length.
    static constexpr size_t kReadableBytes = 16;
    Bytes token_bytes(TokenId id) const { return Bytes(arena_).subspan(offsets_[id], offsets_[id + 1] - offsets_[id]); }
    // Whether merges may make the token: not for unused ids and added tokens. id < size().
    bool is_ordinary(TokenId id) const { return !is_added_[id] && !token_bytes(id).empty(); }
    TokenId byte_token(uint8_t byte) const { return byte_tokens_[byte]; }
    // The rank of the merge of two tokens, kNoRank if they do not merge; and what the merge of a rank makes.
    uint32_t find_rank(TokenId left, TokenId right) const { return pairs_.find(pairs_.locate(left, right)); }
    const PairTable& pairs() const { return pairs_; }
    // find_rank for the tokens of two bytes, from a table of its own: half of all look-ups, and those of few pairs.
    uint32_t find_byte_rank(uint8_t left, uint8_t right) const { return byte_pairs_[left << 8 | right]; }
    TokenId merge_result(uint32_t rank) const { return is_rank_id_ ? rank : spec_.merges[rank].result; }
    // The ordinary token whose bytes are exactly these, or else the added one; kNoToken if there is none.
    TokenId token_id(Bytes bytes) const;
    // The token whose bytes are exactly `pretoken`, if encoding the pretoken gives that token alone; else kNoToken.
    TokenId whole_pretoken(Bytes pretoken) const;
    TokenId whole_pretoken(ShortKey pretoken) const {
        const ShortToken& slot = short_tokens_[find_short_slot(pretoken)];
        return slot.key.high != 0 ? slot.whole : kNoToken;
    }
    // False for most pretokens that whole_pretoken() does not know, and for none that it does. Cheaper.
    bool may_be_whole_pretoken(ShortKey pretoken) const { return token_filter_.may_contain(pretoken); }
    [[gnu::always_inline]] void prefetch_whole_pretoken(ShortKey pretoken) const {
        fastcompress::prefetch(&short_tokens_[pretoken.hash() & (short_tokens_.size() - 1)]);
    }

    // What make() was given, special tokens sorted.
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
    // Replaces `out` by the normalized text and returns true, or returns false if the text is normalized as it is.
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
    bool is_rank_id_ = false;           // kRanks: the rank of a merge is the id of its result
    // The tokens that are not added, by their bytes; of several with the same bytes the first. Open addressing: up to 15
    // bytes are the key itself, so that a look-up is one access to memory; longer ones are compared in the arena.
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
        return i;  // of the key, or the free one where it belongs
    }
    HugeArray<ShortToken> short_tokens_{0};
    KeyFilter token_filter_;  // of their keys
    std::vector<TokenId> long_tokens_;
    std::vector<bool> is_added_;       // by id: an added token's alone
    std::vector<bool> is_whole_long_;  // by id, of more than 15 bytes: encoding the bytes gives the token
    bool has_all_bytes_ = true;
};

}  // namespace fastcompress::bpe
