#include "fastcompress/bpe/encode/canonical_pairs.h"

#include <algorithm>
#include <array>
#include <vector>

#include "fastcompress/bpe/encode/long_merge.h"
#include "fastcompress/bpe/encode/merge_lanes.h"
#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

// Merges pairs of tokens of one vocabulary, on one thread at a time.
class PairMerger {
  public:
    PairMerger(const Vocabulary& vocabulary, std::span<const TokenId> tokens)
        : vocabulary_(vocabulary), tokens_(tokens), short_(vocabulary), middle_(vocabulary), long_(vocabulary) {}

    // Sets the bits of the tokens that may follow `first`.
    void fill(TokenId first, std::span<uint8_t> row) {
        const Bytes head = vocabulary_.token_bytes(first);
        for (auto& list : by_size_) list.clear();
        for (const TokenId second : tokens_) {
            const size_t size = head.size() + vocabulary_.token_bytes(second).size();
            by_size_[size <= kShort ? 0 : size <= kMiddle ? 1 : 2].push_back(second);
        }
        merge_side_by_side(short_, head, by_size_[0], first, row);
        merge_side_by_side(middle_, head, by_size_[1], first, row);
        for (const TokenId second : by_size_[2]) {
            const Bytes tail = vocabulary_.token_bytes(second);
            joined_.assign(head.begin(), head.end());
            joined_.insert(joined_.end(), tail.begin(), tail.end());
            out_.clear();
            long_.merge(joined_, out_);
            set(row, first, second, out_.tokens());
        }
    }

  private:
    static constexpr uint32_t kShort = 16;
    static constexpr uint32_t kMiddle = 64;

    static void set(std::span<uint8_t> row, TokenId first, TokenId second, std::span<const TokenId> ids) {
        const bool is_canonical = ids.size() == 2 && ids[0] == first && ids[1] == second;
        row[second / 8] |= static_cast<uint8_t>(is_canonical << second % 8);
    }

    template <uint32_t kMaxBytes>
    void merge_side_by_side(MergeLanes<kMaxBytes>& lanes, Bytes head, std::span<const TokenId> seconds, TokenId first,
                            std::span<uint8_t> row) {
        joined_.resize(seconds.size() * kMaxBytes);
        for (size_t i = 0; i < seconds.size(); ++i) {
            const auto at = std::ranges::copy(head, joined_.begin() + static_cast<ptrdiff_t>(i * kMaxBytes)).out;
            std::ranges::copy(vocabulary_.token_bytes(seconds[i]), at);
        }
        lanes.merge(
            seconds.size(),
            [&](size_t i) {
                const size_t size = head.size() + vocabulary_.token_bytes(seconds[i]).size();
                return Bytes(joined_).subspan(i * kMaxBytes, size);
            },
            [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t>) {
                set(row, first, seconds[i], ids);
            });
    }

    const Vocabulary& vocabulary_;
    const std::span<const TokenId> tokens_;
    MergeLanes<kShort> short_;
    MergeLanes<kMiddle> middle_;
    LongMerger long_;
    std::array<std::vector<TokenId>, 3> by_size_;
    std::vector<uint8_t> joined_;
    TokenBuffer out_;
};

// Returns the ordinary tokens that merging their own bytes gives.
Result<std::vector<TokenId>> merged_tokens(const Vocabulary& vocabulary) {
    LongMerger merger(vocabulary);
    TokenBuffer out;
    std::vector<TokenId> tokens;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
        if (!vocabulary.is_ordinary(id)) continue;
        out.clear();
        merger.merge(vocabulary.token_bytes(id), out);
        if (out.size() == 1 && out.tokens()[0] == id) {
            tokens.push_back(id);
        } else if (vocabulary.whole_pretoken(vocabulary.token_bytes(id)) == id) {
            return invalid_argument(
                "token " + std::to_string(id) +
                " encodes its bytes only as a whole pretoken, so no table of pairs is exact for this "
                "vocabulary; use one whose tokens all come from merges");
        }
    }
    return tokens;
}

}  // namespace

Status canonical_pairs(const Vocabulary& vocabulary, size_t num_threads, std::span<uint8_t> rows) {
    const Result<std::vector<TokenId>> tokens = merged_tokens(vocabulary);
    if (!tokens.ok()) return tokens.status();
    std::ranges::fill(rows, uint8_t{0});
    const size_t row_bytes = pair_row_bytes(vocabulary);
    const auto weight = [&](size_t i) { return vocabulary.token_bytes((*tokens)[i]).size() + 8; };
    parallel_parts(tokens->size(), num_threads, weight, [&](size_t, size_t begin, size_t end) {
        PairMerger merger(vocabulary, *tokens);
        for (size_t i = begin; i < end; ++i) {
            const TokenId first = (*tokens)[i];
            merger.fill(first, rows.subspan(first * row_bytes, row_bytes));
        }
    });
    return {};
}

}  // namespace fastcompress::bpe
