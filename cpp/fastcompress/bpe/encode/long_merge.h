// Merging of long pretokens, exactly and in small pieces.
//
// Merges proceed by rank over all of a pretoken, so what one byte becomes may depend on bytes far away. But it can be
// *checked* locally. Write m(x) for the tokens that merging a byte string x alone ends with.
//
//   Lemma 1. If m(abc) has token boundaries at both ends of b, then its tokens between them are m(b).
//     Up to the end no merge crossed these boundaries. So the merges inside b are, in their order, each the leftmost of
//     lowest rank of all of the text, hence of b; and when none is left in the text, none is left in b.
//   Lemma 2. t1 ... tk = m(x) if each m(ti) = ti and each m(ti ti+1) = ti ti+1.
//     Otherwise take the first merge in m(x) that crosses a boundary, say between ti and ti+1. Until then the merges within
//     ti ti+1 were those of m(ti ti+1), by the argument above, and this merge would be the next one there as well.
//
// By lemma 1 every token of m(x), and every two neighbours, are such as lemma 2 asks for. So if two stretches of the text
// that overlap, each merged alone, have one token in common (the same bytes at the same place, hence the same id), then
// the tokens of the first up to that one, followed by those of the second after it, are what merging both together gives:
// all their neighbours are neighbours in one of the two. Nothing is assumed of ranks, of the vocabulary, or of the text.
//
// Most text agrees again a few tokens after a boundary, so windows of 64 bytes that overlap do. Where they do not (runs of
// spaces, of which 128 are a token), longer pieces are merged with a queue by rank, and if even those do not agree, all
// of the pretoken is.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "fastcompress/bpe/encode/merge_lanes.h"
#include "fastcompress/bpe/encode/rank_queue.h"
#include "fastcompress/bpe/encode/token_list.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// Merges one pretoken at a time. It holds at most 1 MiB between calls.
class LongMerger {
  public:
    explicit LongMerger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    // Appends the ids of a pretoken of at least one byte, by merges alone. O(n log n) in the worst case.
    void merge(Bytes pretoken, TokenBuffer& out);

  private:
    // Consecutive tokens: token i is ids[i] and ends before byte ends[i] of the pretoken; the first begins at `begin`.
    struct Piece {
        uint32_t begin = 0;
        std::vector<TokenId> ids;
        std::vector<uint32_t> ends;
        uint32_t end() const { return ends.empty() ? begin : ends.back(); }
    };
    struct Windows {
        static constexpr uint32_t kBytes = 64;  // of a window
        static constexpr uint32_t kMaxCount = 32;
        struct Result {  // as in Piece, from the beginning of the window
            uint32_t count;
            std::array<TokenId, kBytes> ids;
            std::array<uint8_t, kBytes> ends;
        };
        explicit Windows(const Vocabulary& vocabulary) : lanes(vocabulary) {}
        MergeLanes<kBytes> lanes;
        std::array<Result, kMaxCount> results;
    };
    struct QueueBuffers {  // of merge_by_rank; positions are those in the piece
        TokenList tokens;
        std::vector<uint32_t> ranks;      // of the pair that begins at each position
        std::vector<uint32_t> positions;  // those whose turn it is
        RankQueue queue;
    };

    bool merge_in_pieces();
    bool advance_by_windows();
    bool advance_by_queue(uint32_t num_bytes, size_t overlap);
    bool repeat_last_piece();
    uint32_t last_boundary(size_t distance) const;
    template <class End>
    bool stitch(uint32_t begin, std::span<const TokenId> ids, const End& end_of);
    void merge_by_rank(uint32_t begin, uint32_t end, Piece& piece);
    uint32_t set_pair(uint32_t position, uint32_t rank);
    void prefetch_pairs(uint32_t position, uint32_t rank) const;
    void merge_next_rank();

    const Vocabulary& vocabulary_;
    Bytes text_;                 // the pretoken
    Piece done_;                 // the tokens of a prefix of it, as if there were no more
    Piece piece_;                // what is to follow
    size_t budget_ = 0;          // how many bytes may yet be merged by queue before all of the pretoken is
    uint32_t num_by_queue_ = 0;  // how many bytes are to be merged by queue before windows are tried again
    std::unique_ptr<Windows> windows_;
    QueueBuffers queue_;
};

}  // namespace fastcompress::bpe
