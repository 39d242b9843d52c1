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
#include "fastcompress/pretokenizer/scanners.h"

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

// Calls visit(Bytes pretoken) for each pretoken of the text in order. O(text.size()): a character is read a bounded
// number of times, though a run of white space or upper case is read to its end before it is split.
template <class Visit>
void for_each_pretoken(Pattern pattern, Bytes text, Visit&& visit) {
    const auto scan = [&](bool with_case, const auto& next) {
        if (text.empty()) return;
        ClassBitmaps bitmaps(text, with_case);
        const Text reader(text, bitmaps);
        for (size_t begin = 0; begin < text.size();) {
            bitmaps.move_to(begin);
            const size_t end = next(reader, begin);
            visit(text.subspan(begin, end - begin));
            begin = end;
        }
    };
    switch (pattern) {
        case Pattern::kGpt2: return scan(false, [](const Text& t, size_t begin) { return next_gpt2(t, begin); });
        case Pattern::kCl100k: return scan(false, [](const Text& t, size_t begin) { return next_cl100k(t, begin); });
        case Pattern::kO200k: return scan(true, [](const Text& t, size_t begin) { return next_o200k(t, begin); });
        case Pattern::kWhitespace:
            return scan(false, [](const Text& t, size_t begin) { return next_whitespace(t, begin); });
        case Pattern::kNone:
            if (!text.empty()) visit(text);
            return;
    }
}

}  // namespace fastcompress::pretokenizer
