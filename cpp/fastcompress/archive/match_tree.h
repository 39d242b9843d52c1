// Finds, at every position of a text and for each length, the nearest earlier occurrence of that many bytes.
//
// Positions with the same hash of their first four bytes form a binary search tree, ordered by the text at the
// positions. Every node is newer than the nodes below it, so the newest is at the root. Inserting a position splits the
// tree at its text. The path down visits the newest candidates first, and each one that agrees for longer than all
// before is a match.
//   text    a b c d x a b c d y a b c d z      the tree before position 10: root 5 (abcdy), left child 0 (abcdx)
//   insert  10 (abcdz)                         5 is smaller: match of length 4, distance 5; it becomes the left child
// (The structure of the "bt" match finders of LZMA, by Igor Pavlov.) Two more tables hold the last position of each
// hash of two and of three bytes.
//
// Lengths are limited to `nice`, and at most `depth` nodes are visited: O(depth + nice) per position on most texts, and
// O(depth * nice) on any. Memory: 8 bytes per byte of the text, and at most 4 MiB of tables.
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
    // Requires a text of fewer than 2^31 bytes, which must outlive the tree, depth >= 1 and nice >= 4.
    MatchTree(Bytes text, uint32_t depth, uint32_t nice);

    // Writes the matches at the next position to `out`, at most `nice`, and inserts the position. Lengths, from 2 to
    // nice, and distances ascend. Returns the end of the matches.
    Match* find(Match* out) { return visit<true>(out); }
    // Inserts the next `count` positions.
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
    // Positions plus one; 0 for none.
    std::vector<uint32_t> last_of_two_;
    std::vector<uint32_t> last_of_three_;
    HugeArray<uint32_t> roots_;
    HugeArray<uint32_t> children_;  // of position p: at 2 p the smaller child, at 2 p + 1 the larger
};

}  // namespace fastcompress::archive
