// The scanners of the named patterns (pretokenizer.h).
//
// Each next_<pattern>(text, begin) returns the end of the pretoken that begins at `begin`. It tries the alternatives of
// the regex in their order. Where a regex engine would backtrack, the steps are written out.
#pragma once

#include "fastcompress/common/words.h"
#include "fastcompress/pretokenizer/text.h"

namespace fastcompress::pretokenizer {

// [^\s\p{L}\p{N}]
inline bool is_symbol(CharClass cls) {
    return !(cls & (kSpace | kLetter | kNumber));
}

inline bool is_newline(uint8_t byte) {
    return byte == '\n' || byte == '\r';
}

inline bool is_ascii_letter(uint8_t byte) {
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

// The length of the English contraction ('s 'd 'm 't 'll 've 're) at `position`, with its apostrophe; 0 if there is
// none. Without regard to case, 's also matches 'ſ (U+017F, two bytes), whose simple case folding is s.
template <bool kIgnoreCase>
size_t contraction(const Text& text, size_t position) {
    if (text.byte(position) != '\'') return 0;
    const auto letter = [&](size_t i) {
        const uint8_t byte = text.byte(position + i);
        return kIgnoreCase && byte >= 'A' && byte <= 'Z' ? static_cast<uint8_t>(byte + 32) : byte;
    };
    const uint8_t first = letter(1);
    if (first == 's' || first == 'd' || first == 'm' || first == 't') return 2;
    const uint8_t second = letter(2);
    if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e')) return 3;
    if (kIgnoreCase && first == 0xc5 && second == 0xbf) return 3;
    return 0;
}

// \p{N}{1,3}: the end of up to three number characters.
inline size_t up_to_three_numbers(const Text& text, size_t position) {
    for (int i = 0; i < 3; ++i) {
        const Text::Char c = text.at(position);
        if (!(c.cls & kNumber)) break;
        position += c.length;
    }
    return position;
}

struct SpaceRun {
    size_t begin;
    size_t end;
};

inline SpaceRun read_spaces(const Text& text, size_t begin) {
    return {begin, text.run(begin, kSpaceRun)};
}

// \s*[\r\n]: the end of the run's last CR or LF, or 0 if it has none.
inline size_t after_last_newline(const Text& text, const SpaceRun& run) {
    for (size_t end = run.end; end > run.begin; --end) {
        if (is_newline(text.byte(end - 1))) return end;
    }
    return 0;
}

// \s+(?!\S)|\s: white space up to the end of the text; otherwise all of it but the last character, or that character if
// it is the only one.
inline size_t end_of_spaces(const Text& text, const SpaceRun& run) {
    if (text.at_end(run.end)) return run.end;
    const size_t last = text.before(run.end);
    return last == run.begin ? run.end : last;
}

inline size_t next_gpt2(const Text& text, size_t begin) {
    if (const size_t length = contraction<false>(text, begin)) return begin + length;
    const size_t word = begin + (text.byte(begin) == ' ');  // " ?"
    const CharClass cls = text.at(word).cls;
    if (cls & kLetter) return text.run(word, kLetterRun);
    if (cls & kNumber) return text.run(word, kNumberRun);
    if (!text.at_end(word) && is_symbol(cls)) return text.run(word, kSymbolRun);
    return end_of_spaces(text, read_spaces(text, begin));
}

// \s*[\r\n]+|\s+(?!\S)|\s+, the last alternatives of o200k, Llama 3, Qwen 2 and strict: white space ends after its last
// line break, also at the end of the text.
inline size_t end_of_spaces_by_lines(const Text& text, size_t begin) {
    const SpaceRun run = read_spaces(text, begin);
    const size_t end = after_last_newline(text, run);
    return end ? end : end_of_spaces(text, run);
}

// The alternatives that cl100k, Llama 3 and Qwen 2 share: contractions, words with one other character before them,
// numbers (one character or up to three), symbols with line breaks after them. Returns 0 if none matches at `begin`.
template <bool kSingleNumbers>
size_t word_number_or_symbols(const Text& text, size_t begin) {
    if (const size_t length = contraction<true>(text, begin)) return begin + length;
    const Text::Char first = text.at(begin);
    if (first.cls & kLetter) return text.run(begin, kLetterRun);
    if (first.cls & kNumber) return kSingleNumbers ? begin + first.length : up_to_three_numbers(text, begin);
    if (!(first.cls & kNewline) && text.at(begin + first.length).cls & kLetter) {
        return text.run(begin + first.length, kLetterRun);
    }
    const size_t symbols = begin + (text.byte(begin) == ' ');
    if (text.at_end(symbols) || !is_symbol(text.at(symbols).cls)) return 0;
    size_t end = text.run(symbols, kSymbolRun);
    while (is_newline(text.byte(end))) ++end;
    return end;
}

inline size_t next_cl100k(const Text& text, size_t begin) {
    if (const size_t end = word_number_or_symbols<false>(text, begin)) return end;
    const SpaceRun run = read_spaces(text, begin);
    if (!text.at_end(run.end)) {  // \s++$ comes before \s*[\r\n]
        if (const size_t end = after_last_newline(text, run)) return end;
    }
    return end_of_spaces(text, run);
}

inline size_t next_llama3(const Text& text, size_t begin) {
    const size_t end = word_number_or_symbols<false>(text, begin);
    return end ? end : end_of_spaces_by_lines(text, begin);
}

inline size_t next_qwen2(const Text& text, size_t begin) {
    const size_t end = word_number_or_symbols<true>(text, begin);
    return end ? end : end_of_spaces_by_lines(text, begin);
}

// The first two alternatives of o200k after their optional first character: words that end where upper case follows
// lower case. With U = [Lu Lt Lm Lo M] and L = [Ll Lm Lo M], these functions return the end of U*L+, or else of U+L*,
// from `begin`; 0 if neither matches.
//
// Backtracking, written out: let u be the end of the run of U. If a character of L follows at u (it must be Ll), the
// match extends to the end of the run of L. Otherwise U* gives characters back until one is in L: the last such
// character of the run ends the match, since all characters after it are in U only. Otherwise U+L* matches the run of
// U.
inline size_t lower_word(const Text& text, size_t begin) {  // U*L+
    const size_t upper_end = text.run(begin, kUpperSetRun);
    const size_t end = text.run(upper_end, kLowerSetRun);
    if (end > upper_end) return end;
    for (size_t last = upper_end; last > begin;) {  // give back until one is in L
        const size_t before = text.before(last);
        if (text.at(before).cls & kLowerSet) return last;
        last = before;
    }
    return 0;
}

inline size_t upper_word(const Text& text, size_t begin) {  // U+L*; called only where U*L+ failed, so L* is empty
    const size_t end = text.run(begin, kUpperSetRun);
    return end > begin ? end : 0;
}

inline size_t next_o200k(const Text& text, size_t begin) {
    const Text::Char first = text.at(begin);
    const bool may_precede = !(first.cls & (kNewline | kLetter | kNumber));  // [^\r\n\p{L}\p{N}]?, greedy
    if (may_precede) {
        if (const size_t end = lower_word(text, begin + first.length)) return end + contraction<true>(text, end);
    }
    if (first.cls & (kLetter | kMark)) {
        if (const size_t end = lower_word(text, begin)) return end + contraction<true>(text, end);
    }
    if (may_precede) {
        if (const size_t end = upper_word(text, begin + first.length)) return end + contraction<true>(text, end);
    }
    if (first.cls & (kLetter | kMark)) {
        if (const size_t end = upper_word(text, begin)) return end + contraction<true>(text, end);
    }
    if (first.cls & kNumber) return up_to_three_numbers(text, begin);
    const size_t symbols = begin + (text.byte(begin) == ' ');
    if (!text.at_end(symbols) && is_symbol(text.at(symbols).cls)) {
        size_t end = text.run(symbols, kSymbolRun);
        while (is_newline(text.byte(end)) || text.byte(end) == '/') ++end;
        return end;
    }
    return end_of_spaces_by_lines(text, begin);
}

inline size_t next_strict(const Text& text, size_t begin) {
    const size_t word = begin + (text.byte(begin) == ' ');
    const CharClass cls = text.at(word).cls;
    if (cls & (kLetter | kMark)) return text.run(word, kMarkedWordRun);
    if (text.at(begin).cls & kNumber) return up_to_three_numbers(text, begin);
    if (!text.at_end(word) && is_symbol(cls)) return text.run(word, kUnmarkedSymbolRun);
    return end_of_spaces_by_lines(text, begin);
}

inline size_t next_whitespace(const Text& text, size_t begin) {
    const size_t word = begin + (text.byte(begin) == ' ');
    if (text.at_end(word) || text.at(word).cls & kSpace) return end_of_spaces(text, read_spaces(text, begin));
    size_t end = word;  // \S+: letters, numbers and symbols in turn
    for (size_t before = text.size(); before != end;) {
        before = end;
        for (const RunClass run_class : {kLetterRun, kNumberRun, kSymbolRun}) end = text.run(end, run_class);
    }
    return end;
}

inline size_t next_words(const Text& text, size_t begin) {
    using words::kind_of;
    const bool is_space_before =
        text.byte(begin) == ' ' && !text.at_end(begin + 1) && kind_of(text.byte(begin + 1)) != words::Kind::kWhite;
    size_t end = begin + is_space_before;
    const words::Kind kind = kind_of(text.byte(end));
    do ++end;
    while (!text.at_end(end) && kind_of(text.byte(end)) == kind);
    return end;
}

}  // namespace fastcompress::pretokenizer
