// Pretokenizers: how a text is cut into pretokens, the pieces that BPE merges never cross.
//
// Each named pattern is a regular expression that other tokenizers run on a regex engine; here each is a hand-written
// scanner that returns exactly the matches the regex would (tests/test_pretokenizer.py compares them on every code
// point and on random strings). Scanners read any bytes: a byte that belongs to no well-formed UTF-8 sequence counts
// as one character that is neither letter, mark, number nor white space. Pretokens are non-empty and their
// concatenation is the text.
//
// Unicode classes are those of kUnicodeVersion (char_class.h).
#pragma once

#include <optional>
#include <string_view>

#include "fastcompress/common/bytes.h"

namespace fastcompress::pretokenizer {

enum class Pattern : uint8_t { kGpt2, kCl100k, kO200k, kWhitespace, kNone };

struct PatternInfo {
    Pattern pattern;
    std::string_view name;   // as files and the Python API spell it
    std::string_view regex;  // in the syntax of the Rust crate `regex` with possessive quantifiers; empty for kNone
};

// Every named pattern, in the order of Pattern.
std::span<const PatternInfo> patterns();
const PatternInfo& info(Pattern pattern);
std::optional<Pattern> pattern_from_name(std::string_view name);

// The end of the pretoken that begins at `begin` < text.size(), given that a pretoken begins there. O(length of the
// pretoken) except in one case: before a white-space or upper-case run is split, the run is read to its end, so
// each character is read a bounded number of times (at most four) over a whole text.
using NextPretoken = size_t (*)(Bytes text, size_t begin);
NextPretoken scanner(Pattern pattern);

// Calls visit(Bytes pretoken) for each pretoken of the text in order. O(text.size()).
template <class Visit>
void for_each_pretoken(Pattern pattern, Bytes text, Visit&& visit) {
    const NextPretoken next = scanner(pattern);
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = next(text, begin);
        visit(text.subspan(begin, end - begin));
        begin = end;
    }
}

}  // namespace fastcompress::pretokenizer
