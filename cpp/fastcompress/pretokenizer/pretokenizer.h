// Splits a text into pretokens, the pieces that BPE merges never cross.
//
// A named pattern is a regular expression, which other tokenizers run on a regex engine. Here each has a hand-written
// scanner that returns exactly the matches of the regex; tests/test_pretokenizer.py compares the two on every code
// point and on random strings. With cl100k:
//   I'll pay $12345.   ->   I | 'll | pay | $ | 123 | 45 | .      (" pay" and " $" include the space before them)
// Pretokens are not empty, and joined they give the text. Any bytes can be read: a byte outside of every well-formed
// UTF-8 sequence counts as one character that is not a letter, mark, number, punctuation or white space (but `words`
// reads bytes, of which those from 0x80 on are letters). The classes are those of kUnicodeVersion (char_class.h).
//
// Layers, from the bottom up: char_class.h classifies a character; class_bitmaps.h classifies the bytes of a window;
// scanners.h finds the end of one pretoken; boundary_bits.h finds nearly all boundaries in a window at once, as its
// head shows on the example above; pretoken_finder.h combines the last two.
#pragma once

#include "fastcompress/common/bytes.h"
#include "fastcompress/pretokenizer/pattern.h"
#include "fastcompress/pretokenizer/pretoken_finder.h"

namespace fastcompress::pretokenizer {

// Calls visit(Bytes pretoken) for each pretoken of the text in order. O(text.size()): each character is read a bounded
// number of times. A run of white space or upper case is read to its end before it is split.
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
