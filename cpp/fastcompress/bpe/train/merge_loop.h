// The loop of BPE training: take the pair of symbols that occurs most often, merge it everywhere, and so on.
//
// State. A SymbolArray; the exact count of each frequent pair; for each of them the positions where it was made (a
// superset of those where it is now); and a heap of pairs by (count, pair) as they were when pushed. A merge visits the
// positions of its pair only, left to right, so it costs O(1) for each place, whatever the length of the pretoken. What
// it does to the counts of pairs is summed up first for each neighbour (`Neighbour`), and written to the table once.
//
// Lazy heap. A count only falls after its pair was pushed, because every new occurrence of a pair holds the newest
// symbol. So the top is up to date, or it is pushed down to where its present count belongs.
//
// Frequent pairs. Most pairs that ever occur are rare and never merged. Those that occur less than threshold_ times when
// they are made are forgotten: no count, no positions. Counts fall, so they stay below; while the top is at least
// threshold_, it is the most frequent of all pairs. When it is not, the threshold is lowered and all pairs are counted
// again (index_pairs). So the result does not depend on the threshold; memory and time do: on English the table gets
// ten times smaller and stays in the cache.
//
// Hugging Face's rules (`MergeRules::huggingface`). There a merge whose bytes are those of an older token gets its id.
// Then new occurrences of old pairs appear, and the counts that its trainer goes by are no longer exact; ids come out
// as there if one does precisely what it does:
//   - A pair that was merged keeps its count. If it is made again, new occurrences are added to that.
//   - Whatever makes occurrences of a pair pushes an entry of its own, with the pretokens where that happened (`List`)
//     and the count at that time. The pair then has several entries; a merge by one of them visits its pretokens only,
//     in them all occurrences, and it is recorded as a merge again (of both, the later rank counts).
//   - Entries stay in the heap with any count, since it may rise.
//   - Pairs of two bytes may be merged whatever the greatest length is; later ones only if they stay below it.
// So nothing is forgotten under these rules: the threshold is 1.
//
// Complexity: O(cells + occurrences made + pairs log pairs). Memory: 4 bytes a cell, 4 a position, and 24 each in the
// table and the heap a frequent pair; positions that are no longer valid are dropped whenever all of them grew by a half.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/bpe/train/pair_counts.h"
#include "fastcompress/bpe/train/symbol_array.h"

namespace fastcompress::bpe {

struct MergeRules {
    bool huggingface = false;
    int64_t min_frequency = 1;  // pairs that occur less are not merged; >= 1
    uint64_t max_token_bytes = ~uint64_t{0};
};

class MergeLoop {
  public:
    struct Candidate {
        int64_t count;
        Pair pair;
        uint32_t list;  // of positions
    };

    // num_merges: how many are wanted, about, which decides what is frequent and nothing else.
    MergeLoop(SymbolArray symbols, const MergeRules& rules, size_t num_merges);

    // Removes and returns the pair that occurs most often, the least of equals, or nothing if none may be merged.
    std::optional<Candidate> pop_most_frequent();
    // Merges a popped pair. `result` is a new symbol, one greater than the greatest there was, or under Hugging Face's
    // rules any symbol with the same bytes.
    void merge(const Candidate& candidate, TokenId result);

  private:
    using Position = SymbolArray::Position;

    struct List {
        size_t begin;  // into positions_, ascending in order of lists
        uint32_t size;
        uint32_t older;  // the list that the pair had before, or kNoList
    };
    static constexpr uint32_t kNoList = 0;

    // A symbol beside occurrences of the merge, `weight` times: its pair with the old symbol there is broken so often,
    // its pair with the new one made.
    struct Neighbour {
        TokenId symbol;
        bool is_left;
        uint32_t num_positions;
        int64_t weight;
        int64_t made;   // the count of the pair made, when the merge is done
        size_t cursor;  // where its next position goes, or kNowhere
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
    size_t collect_at_ = 0;  // drop invalid positions when there are so many
    std::vector<Candidate> heap_;

    // Of the present merge:
    std::vector<Neighbour> neighbours_;
    std::vector<uint32_t> left_neighbours_, right_neighbours_;  // by symbol: 1 + its place in neighbours_, or 0
    std::vector<Event> events_;
    std::vector<Position> union_;
};

}  // namespace fastcompress::bpe
