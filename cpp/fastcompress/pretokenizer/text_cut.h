// Where a text may be cut so that its parts, pretokenized each alone, give the pretokens of the whole: for counting one
// text on several threads, and a file that is larger than memory.
//
// The rule: before ASCII white space that follows a letter or a number. It holds for every pattern but `none` (whose
// pretoken is the whole text), and for other regexes it is not known to hold. Why it is right, with c the cut:
//   1. c is a boundary. The character before c is a letter or number, the one at c white space, and in no pattern does a
//      pretoken go on from a letter or number to white space.
//   2. What follows c stays. A scanner finds the end of a pretoken from the bytes after its begin alone, so from the
//      boundary c on it finds the same ends whether or not there is a text before c.
//   3. What precedes c stays. A scanner can tell the end of a text from white space by `$` and `(?!\S)` alone. Both
//      stand behind runs of white space only, and no such run ends at c.
// (UTF-8: a byte that is no continuation byte begins a character wherever reading started, so the character before c
// can be read backwards.)
#pragma once

#include "fastcompress/common/bytes.h"

namespace fastcompress::pretokenizer {

// The least position >= from, and > 0, at which the text may be cut, or text.size(). O(distance).
size_t next_cut(Bytes text, size_t from);
// The greatest position < text.size() at which the text may be cut, or 0: there is none. O(distance from the end).
size_t last_cut(Bytes text);

}  // namespace fastcompress::pretokenizer
