// BPE training (Gage 1994; Sennrich, Haddow and Birch 2016), exactly and deterministically.
//
//   count the distinct pretokens -> repeat: merge the pair of tokens that occurs most often, everywhere.
//
// Ties: of pairs that occur equally often, the one with the smaller (left id, right id) is merged first, where bytes
// have the ids 0 to 255 and the n-th merge makes id 256 + n. Counts are exact 64-bit integers, so the merges depend on
// the multiset of pretokens only: not on the order of texts, the number of threads, or the machine.
//
// State: each distinct pretoken is a run of ids; each pair has its exact count and the pretokens it was ever seen in
// (a superset of those it is in now). A merge visits those pretokens only and adjusts the counts of the pairs next to
// it. A heap holds pairs by (count, ids) as they were when pushed; a count can only fall after that, because every new
// occurrence of a pair involves the newest id. So the top is either up to date, or is pushed back with its present
// count (a lazy heap). A merge rereads every pretoken it may occur in. So training takes O(B + P log P) for B bytes
// and P pairs, plus the lengths of the pretokens visited: little where pretokens are words, O(M * B) for M merges
// where the text is one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fastcompress/bpe/vocabulary.h"

namespace fastcompress::bpe {

// A multiset of pretokens. Tables add up: counting parts of a corpus apart and adding the tables gives the same as
// counting it whole.
class PretokenCounts {
  public:
    // Adds the pretokens of a text. O(text).
    void add_text(Bytes text, pretokenizer::Pattern pattern);
    // Adds `count` times one pretoken.
    void add(Bytes pretoken, int64_t count);
    void add(const PretokenCounts& other);

    size_t size() const { return entries_.size(); }  // distinct pretokens
    Bytes pretoken(size_t i) const { return Bytes(arena_).subspan(entries_[i].begin, entries_[i].length); }
    int64_t count(size_t i) const { return entries_[i].count; }

  private:
    struct Entry {
        uint64_t hash;
        size_t begin;  // into arena_
        size_t length;
        int64_t count;
    };
    void grow();

    std::vector<uint8_t> arena_;
    std::vector<Entry> entries_;
    std::vector<uint32_t> slots_;  // open addressing: entry index + 1, or 0
};

// Counts the pretokens of many texts on up to num_threads threads.
PretokenCounts count_pretokens(std::span<const Bytes> texts, pretokenizer::Pattern pattern, size_t num_threads);

// The first num_merges merges, or fewer when no pair is left. progress(merges done) is called now and then; it may
// throw to stop.
std::vector<Merge> train_merges(const PretokenCounts& counts, size_t num_merges,
                                const std::function<void(size_t)>& progress);

// The tokens that merges make: 256 bytes, then one a merge.
std::vector<std::string> tokens_of_merges(std::span<const Merge> merges);

}  // namespace fastcompress::bpe
