// The match at every position among all occurrences, in O(log n) a position whatever the text.
//
// Positions before the current one, as far back as the window reaches, are kept by the rank of their suffix. The
// longest match is with one of the two neighbours by rank, since whatever lies further away shares less. Its nearest
// source is the greatest position among those ranks around that share as much, a range that the LCP array delimits.
#pragma once

#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::lz77 {

// A set of numbers below a limit, by words of bits in levels: each bit of a level says whether a word of the level
// below holds any. O(log_64 limit) an operation.
class RankSet {
  public:
    explicit RankSet(size_t limit);
    void insert(size_t rank);
    void erase(size_t rank);
    // The greatest below `rank`, and the least above it; kNone if there is none.
    static constexpr size_t kNone = ~size_t{0};
    size_t before(size_t rank) const;
    size_t after(size_t rank) const;

  private:
    std::vector<std::vector<uint64_t>> levels_;
};

// The least, or the greatest, of a range of an array: a binary tree over it, inner node k above nodes 2 k and 2 k + 1.
class MinTree {
  public:
    explicit MinTree(const std::vector<int32_t>& values);
    // The least index below `end` such that all values from it up to `end` (not included) are at least `least`; `end`
    // if the last is not.
    size_t first_of_run(size_t end, int32_t least) const;
    // The least index from `begin` on whose value is below `least`; the size if there is none.
    size_t end_of_run(size_t begin, int32_t least) const;

  private:
    size_t size_;
    size_t num_leaves_;
    std::vector<int32_t> nodes_;
};
class MaxTree {
  public:
    explicit MaxTree(size_t size);
    void set(size_t index, int32_t value);  // greater than all values so far
    int32_t greatest(size_t begin, size_t end) const;

  private:
    size_t num_leaves_;
    std::vector<int32_t> nodes_;  // -1: none yet
};

class ExactMatcher {
  public:
    // For positions of text[begin, end), which holds what matches may copy from. Lengths end at `end`.
    ExactMatcher(Bytes text, const Params& params, size_t begin, size_t end);

    // The match at a position of the range, not before the last one asked for.
    Match find(size_t position);

  private:
    void advance_to(size_t offset);

    Bytes text_;
    Params params_;
    size_t begin_;
    size_t next_ = 0;  // offsets before it are in the set, as far as the window reaches
    std::vector<int32_t> suffixes_;
    std::vector<int32_t> ranks_;
    MinTree lcp_;
    RankSet active_;
    MaxTree latest_;
};

}  // namespace fastcompress::lz77
