// Positions where a text can be cut such that its parts, each pretokenized alone, give the pretokens of the whole. Used
// to count one text on several threads, and files that are larger than memory.
//
// Rule: cut before ASCII white space that follows a letter or a number. It holds for every named pattern except `none`
// (whose only pretoken is the whole text); it is not known to hold for other regexes. Proof, for a cut c:
//   1. c is a boundary. The character before c is a letter or number and the one at c is white space, and in no pattern
//      does a pretoken continue from a letter or number to white space.
//   2. The pretokens after c do not change. A scanner finds the end of a pretoken from the bytes after its beginning
//      alone, so from the boundary c on it finds the same ends whether or not text precedes c.
//   3. The pretokens before c do not change. Only `$` and `(?!\S)` tell the end of a text from white space. Both are
//      tested after runs of white space only, and no such run ends at c.
// (In UTF-8 a byte that is not a continuation byte begins a character wherever reading started, so the character before
// c can be read backwards.)
#pragma once

#include "fastcompress/common/bytes.h"

namespace fastcompress::pretokenizer {

// Returns the smallest position >= from, and > 0, where the text can be cut, or text.size(). O(distance).
size_t next_cut(Bytes text, size_t from);
// Returns the largest position < text.size() where the text can be cut, or 0 if none exists. O(distance from the end).
size_t last_cut(Bytes text);

}  // namespace fastcompress::pretokenizer
