// The loop of BPE training: merge the most frequent pair of symbols everywhere, and repeat.
//   pretokens   low x 5, lower x 2     counts  l o: 7, o w: 7, w e: 2, e r: 2
//   merge l o   [lo]w, [lo]wer         counts  [lo] w: 7, w e: 2, e r: 2      (l o goes first: the smaller pair)
//   merge lo w  [low], [low]er         counts  [low] e: 2, e r: 2
//
// State. A SymbolArray; the exact count of each frequent pair; for each of these, the positions where it was made, a
// superset of the positions where it is now; and a heap of pairs by (count, pair) as of when they were pushed. A merge
// visits the positions of its pair only, from left to right, so it costs O(1) per position, whatever the length of the
// pretoken. The changes to the counts of other pairs are first added up per neighbouring symbol (`Neighbour`), and then
// written to the table once.
//
// Lazy heap. After a pair was pushed its count can only fall, because every new occurrence of a pair contains the
// newest symbol. So if the count at the top is out of date, it is pushed down to where the present count belongs.
//
// Frequent pairs. Most pairs are rare and never merged. A pair that occurs fewer than threshold_ times when it is made
// is forgotten: it has no count and no positions. Since counts only fall, it stays below the threshold. So as long as
// the count at the top is at least threshold_, the top is the most frequent of all pairs. When it is not, the threshold
// is lowered and all pairs are counted again (index_pairs). The result does not depend on the threshold, but memory and
// time do: on English the table becomes ten times smaller and stays in the cache.
//
// The rules of Hugging Face (`MergeRules::huggingface`). There, a merge that makes the bytes of an older token gets the
// id of that token. So old pairs can get new occurrences, and the counts in their trainer are no longer exact. To get
// the same ids, this loop does exactly what that trainer does:
//   - A merged pair keeps its count. If it is made again, the new occurrences are added to that count.
//   - Each merge that makes occurrences of a pair pushes a separate entry, with the pretokens where that happened
//     (`List`) and the count at that time. So a pair can have several entries. A merge by one of them visits all
//     occurrences in its pretokens, and no others, and is recorded as another merge of the pair (the later rank counts).
//   - Entries stay in the heap at any count, because the count may rise.
//   - A pair of two bytes may always be merged; others only if the result is shorter than the maximal length.
// So no pair can be forgotten under these rules, and the threshold is 1.
//
// Complexity: O(cells + occurrences made + pairs log pairs). Memory: 4 bytes per cell, 4 per position, and per frequent
// pair 24 in the table and 24 in the heap. Invalid positions are dropped whenever the number of positions has grown by
// half.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/bpe/train/pair_counts.h"
#include "fastcompress/bpe/train/symbol_array.h"

namespace fastcompress::bpe {

struct MergeRules {
    bool huggingface = false;
    int64_t min_frequency = 1;  // at least 1; pairs that occur less often are not merged
    uint64_t max_token_bytes = ~uint64_t{0};
};

class MergeLoop {
  public:
    struct Candidate {
        int64_t count;
        Pair pair;
        uint32_t list;  // index of the list of positions
    };

    // num_merges: the approximate number of merges that will be made. It affects only which pairs count as frequent.
    MergeLoop(SymbolArray symbols, const MergeRules& rules, size_t num_merges);

    // Removes and returns the most frequent pair, the smallest of equals; nullopt if no pair may be merged.
    std::optional<Candidate> pop_most_frequent();
    // Merges a popped pair. `result` is a new symbol, the next number after all symbols; under the rules of Hugging
    // Face it may also be any symbol with the same bytes.
    void merge(const Candidate& candidate, TokenId result);

  private:
    using Position = SymbolArray::Position;

    struct List {
        size_t begin;  // index into positions_; ascends with the index of the list
        uint32_t size;
        uint32_t older;  // the list that the pair had before, or kNoList
    };
    static constexpr uint32_t kNoList = 0;

    // A symbol next to occurrences of the merged pair. Each occurrence breaks a pair of it with an old symbol and makes
    // a pair with the new one, `weight` times in all.
    struct Neighbour {
        TokenId symbol;
        bool is_left;
        uint32_t num_positions;
        int64_t weight;
        int64_t made;   // the count of the pair with the new symbol after the merge
        size_t cursor;  // index in positions_ for its next position, or kNowhere
    };
    static constexpr size_t kNowhere = ~size_t{0};
    struct Event {
        uint32_t neighbour;
        Position position;
    };

    int64_t lowest_threshold() const;
    bool may_merge(TokenId left, TokenId right) const;
    void index_pairs();
    std::span<const Position> occurrences(const Candidate& candidate);
    void visit_occurrences(std::span<const Position> positions, Pair pair, TokenId result);
    uint32_t neighbour(TokenId symbol, bool is_left, int64_t count);
    static Pair made_pair(const Neighbour& n, TokenId result) {
        return n.is_left ? make_pair(n.symbol, result) : make_pair(result, n.symbol);
    }
    void count_frequent_pairs(Pair pair, TokenId result);
    void count_all_pairs(Pair pair, TokenId result);
    void subtract_broken_pairs(Pair pair);
    void push_made_pairs(TokenId result);
    void collect_positions();

    SymbolArray symbols_;
    MergeRules rules_;
    int64_t threshold_;
    PairCounts pairs_;
    std::vector<List> lists_;
    GrowingArray<Position> positions_;
    size_t collect_at_ = 0;  // number of positions at which invalid ones are dropped
    std::vector<Candidate> heap_;

    // State of the current merge:
    std::vector<Neighbour> neighbours_;
    std::vector<uint32_t> left_neighbours_, right_neighbours_;  // by symbol: 1 + its index in neighbours_, or 0
    std::vector<Event> events_;
    std::vector<Position> union_;
};

}  // namespace fastcompress::bpe
