// Finds, at every position of a text, for each length the nearest earlier occurrence of so many bytes.
//
// Positions whose first four bytes hash alike form a binary search tree: the newest at its root, smaller texts to the
// left, greater ones to the right, and every node newer than those below it. To insert a position is to split the tree
// at its text, on the way down past its neighbours in order, nearest first; whichever agrees longer than all before is
// a match. (The structure of LZMA's "bt" finders; Igor Pavlov.) Two tables more hold the last position of each hash of
// two and three bytes.
//
// Lengths are cut off at `nice`, and at most `depth` nodes are looked at: O(depth + nice) a position for most texts,
// O(depth * nice) for any. Memory: 8 bytes a byte of the text, and 4 MiB of tables at most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::archive {

using lz77::Match;

class MatchTree {
  public:
    // The text has less than 2^31 bytes and outlives this. depth >= 1, nice >= 4.
    MatchTree(Bytes text, uint32_t depth, uint32_t nice);

    // Matches at the next position, lengths from 2 to nice ascending, distances ascending with them; inserts it.
    // Returns the end of what was written to `out`, at most nice matches.
    Match* find(Match* out) { return visit<true>(out); }
    // Inserts so many positions.
    void skip(size_t count) {
        for (; count > 0; --count) visit<false>(nullptr);
    }
    size_t position() const { return position_; }

  private:
    template <bool kReports>
    Match* visit(Match* out);
    template <bool kReports>
    Match* split(uint32_t candidate, size_t most, size_t longest, Match* out);

    Bytes text_;
    uint32_t depth_;
    uint32_t nice_;
    unsigned hash_bits_;
    size_t position_ = 0;
    // Positions plus one, 0: none.
    std::vector<uint32_t> last_of_two_;
    std::vector<uint32_t> last_of_three_;
    HugeArray<uint32_t> roots_;
    HugeArray<uint32_t> children_;  // of position p at 2 p (smaller) and 2 p + 1
};

}  // namespace fastcompress::archive
