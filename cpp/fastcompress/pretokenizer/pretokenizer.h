// Pretokenizers: how a text is cut into pretokens, the pieces that BPE merges never cross.
//
// Each named pattern is a regular expression that other tokenizers run on a regex engine; here each is a hand-written
// scanner that returns exactly the matches the regex would (tests/test_pretokenizer.py compares them on every code
// point and on random strings). Scanners read any bytes: a byte that belongs to no well-formed UTF-8 sequence counts
// as one character that is neither letter, mark, number, punctuation nor white space. Pretokens are non-empty and their
// concatenation is the text.
//
// From the tables up: char_class.h says what a character is, class_bitmaps.h which bytes are what, scanners.h where
// one pretoken ends, boundary_bits.h where all of a window do, pretoken_finder.h puts the last two together.
//
// Unicode classes are those of kUnicodeVersion (char_class.h).
#pragma once

#include "fastcompress/common/bytes.h"
#include "fastcompress/pretokenizer/pattern.h"
#include "fastcompress/pretokenizer/pretoken_finder.h"

namespace fastcompress::pretokenizer {

// Calls visit(Bytes pretoken) for each pretoken of the text in order. O(text.size()): a character is read a bounded
// number of times, though a run of white space or upper case is read to its end before it is split.
template <class Visit>
void for_each_pretoken(Pattern pattern, Bytes text, Visit&& visit) {
    PretokenFinder finder(pattern, text);
    while (finder.next()) {
        const uint8_t* const base = text.data() + finder.begin();
        const std::span<const uint32_t> ends = finder.ends();
        uint32_t begin = 0;
        for (size_t i = 0; i + 1 < ends.size(); ++i) {
            visit(Bytes(base + begin, ends[i] - begin));
            begin = ends[i];
        }
        visit(Bytes(base + begin, finder.end() - finder.begin() - begin));
    }
}

}  // namespace fastcompress::pretokenizer
