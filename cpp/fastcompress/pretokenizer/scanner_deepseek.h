// The scanner of `deepseek-v3`, which applies three regexes in turn, each to the text between the matches of the one
// before:
//
//   \p{N}{1,3}
//   [一-龥぀-ゟ゠-ヿ]+
//   [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
//       |\s*[\r\n]+|\s+(?!\S)|\s+
//
// The third regex sees only what lies between matches of the first two. So a number ends a stretch here, and so does a
// boundary between the two "scripts": Han and kana, and all other characters. Unlike the other patterns, the third
// regex does not match everything: control characters, unassigned characters and stray bytes that no letter follows are
// left over, and each stretch of them is a pretoken.
#pragma once

#include "fastcompress/pretokenizer/scanners.h"

namespace fastcompress::pretokenizer {

// [\p{L}\p{M}] of one of the two scripts.
inline bool is_word(const Text::Char& c, bool han_or_kana) {
    return c.cls & (kLetter | kMark) && is_han_or_kana(c.code_point) == han_or_kana;
}

// Whether a character has no class at all: the third regex matches it only before a letter.
inline bool is_left_over(const Text::Char& c, bool han_or_kana) {
    return c.length > 0 && c.cls == 0 && is_han_or_kana(c.code_point) == han_or_kana;
}

// The end of the stretch that the third regex leaves over from `begin` on. The character there is_left_over() and has
// no letter after it. A later character with a letter after it belongs to the word, so it ends the stretch.
inline size_t end_of_left_over(const Text& text, size_t begin, bool han_or_kana) {
    size_t end = begin;
    Text::Char next = text.at(begin);
    do {
        end += next.length;
        next = text.at(end);
    } while (is_left_over(next, han_or_kana) && !is_word(text.at(end + next.length), han_or_kana));
    return end;
}

inline size_t next_deepseek_v3(const Text& text, size_t begin) {
    const Text::Char first = text.at(begin);
    if (first.cls & kNumber) return up_to_three_numbers(text, begin);
    const bool han_or_kana = is_han_or_kana(first.code_point);
    const RunClass words = han_or_kana ? kHanKanaWordRun : kOtherWordRun;
    if (first.cls & (kLetter | kMark)) return text.run(begin, words);
    if (first.code_point < 0x80 && first.cls & kPunctuation) {
        size_t end = begin + 1;
        while (is_ascii_letter(text.byte(end))) ++end;
        if (end > begin + 1) return end;
    }
    if (!(first.cls & (kNewline | kPunctuation)) && is_word(text.at(begin + first.length), han_or_kana)) {
        return text.run(begin + first.length, words);
    }
    const size_t symbols = begin + (first.code_point == ' ');
    const Text::Char symbol = text.at(symbols);
    if (symbol.cls & kPunctuation && is_han_or_kana(symbol.code_point) == han_or_kana) {
        size_t end = text.run(symbols, han_or_kana ? kHanKanaPunctuationRun : kOtherPunctuationRun);
        while (!han_or_kana && is_newline(text.byte(end))) ++end;
        return end;
    }
    if (!(first.cls & kSpace)) return end_of_left_over(text, begin, han_or_kana);
    const SpaceRun run = read_spaces(text, begin);
    if (const size_t end = after_last_newline(text, run)) return end;
    const Text::Char after = text.at(run.end);
    if (after.cls & kNumber || is_han_or_kana(after.code_point)) return run.end;
    return end_of_spaces(text, run);
}

}  // namespace fastcompress::pretokenizer
