// Finds the match at every position among all occurrences, in O(log n) per position for any text.
//
// Positions before the current one, as far back as the window reaches, are kept by the rank of their suffix. The
// longest match is with one of the two neighbours by rank, since all others share less. Its nearest source is the
// largest position among the ranks around that share as much, a range that the LCP array delimits:
//
//   rank   suffix   position   lcp with the rank above
//   0      a        5                                      Text "banana", min_length 2, the match at position 3 ("ana",
//   1      ana      3          1                           rank 1): the set holds the ranks of positions 0, 1 and 2,
//   2      anana    1          3                           which are 3, 2 and 5. There is no neighbour below rank 1;
//   3      banana   0          0                           the one above is rank 2, which shares 3 bytes. Only that
//   4      na       4          0                           rank shares as much, so the match has length 3 and
//   5      nana     2          2                           distance 3 - 1 = 2.
//
// Memory: at most 40 bytes per byte of the range. Making it takes O(n log n).
#pragma once

#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::lz77 {

// A set of numbers below a limit, as levels of 64-bit words: each bit of a level tells whether the corresponding word
// of the level below has a bit set. O(log_64 limit) per operation.
class RankSet {
  public:
    explicit RankSet(size_t limit);
    void insert(size_t rank);
    void erase(size_t rank);
    // The largest member below `rank`, and the smallest above it; kNone if there is none.
    static constexpr size_t kNone = ~size_t{0};
    size_t before(size_t rank) const;
    size_t after(size_t rank) const;

  private:
    std::vector<std::vector<uint64_t>> levels_;
};

// Trees that give the minimum, or the maximum, of a range of an array. Inner node k has the children 2 k and 2 k + 1.
class MinTree {
  public:
    explicit MinTree(const std::vector<int32_t>& values);
    // The smallest index such that all values in [index, end) are at least `least`; `end` if the value before it is
    // smaller than that.
    size_t first_of_run(size_t end, int32_t least) const;
    // The smallest index >= `begin` whose value is below `least`; the size if there is none.
    size_t end_of_run(size_t begin, int32_t least) const;

  private:
    size_t size_;
    size_t num_leaves_;
    std::vector<int32_t> nodes_;
};
class MaxTree {
  public:
    explicit MaxTree(size_t size);
    void set(size_t index, int32_t value);  // larger than all values so far
    int32_t greatest(size_t begin, size_t end) const;

  private:
    size_t num_leaves_;
    std::vector<int32_t> nodes_;  // -1: no value yet
};

class ExactMatcher {
  public:
    // Takes the range [begin, end) of the text, which must hold all that matches may copy from. Matches end at `end`.
    ExactMatcher(Bytes text, const Params& params, size_t begin, size_t end);

    // Finds the match at a position of the range, which must not be before the position of the last call.
    Match find(size_t position);

  private:
    void advance_to(size_t offset);

    Bytes text_;
    Params params_;
    size_t begin_;
    size_t next_ = 0;  // offsets before this one are in the set, as far as the window reaches
    std::vector<int32_t> suffixes_;
    std::vector<int32_t> ranks_;
    MinTree lcp_;
    RankSet active_;
    MaxTree latest_;
};

}  // namespace fastcompress::lz77
