// The scanners behind the named patterns, as templates that for_each_pretoken inlines. See pretokenizer.h.
//
// Each next_<pattern>(text, begin) returns the end of the pretoken that begins at `begin`, by the alternatives of the
// regex in their order. Backtracking is spelled out where a regex would do any.
#pragma once

#include "fastcompress/pretokenizer/char_class.h"
#include "fastcompress/pretokenizer/class_bitmaps.h"

namespace fastcompress::pretokenizer {

// A text read character by character and run by run. Positions are byte offsets at character borders; past the end
// every class is 0 and every length 0, so that scanners need no bounds checks of their own.
class Text {
  public:
    Text(Bytes bytes, const ClassBitmaps& bitmaps) : data_(bytes.data()), size_(bytes.size()), bitmaps_(bitmaps) {}

    struct Char {
        CharClass cls;
        uint32_t length;
    };
    Char at(size_t position) const {
        if (position >= size_) return {0, 0};
        if (data_[position] < 0x80) return {kClassBlocks[data_[position]], 1};
        const DecodedCodePoint decoded = decode_utf8(data_, position, size_);
        return {class_of(decoded.value), decoded.length};
    }
    // The byte at a position, or 0 past the end (also the byte NUL; no caller looks for that one).
    uint8_t byte(size_t position) const { return position < size_ ? data_[position] : uint8_t{0}; }
    size_t size() const { return size_; }
    bool at_end(size_t position) const { return position >= size_; }

    // The end of the run of a class from `position` on.
    size_t run(size_t position, RunClass run_class) const {
        if (position < bitmaps_.end()) {
            position = bitmaps_.run_end(run_class, position);
            if (position < bitmaps_.end()) return position;
        }
        return slow_run(position, run_class);
    }
    // The character before `position`, which is not the first, begins here. Only for positions after a well-formed one.
    size_t before(size_t position) const {
        do --position;
        while ((data_[position] & 0xc0u) == 0x80u);
        return position;
    }

  private:
    // Past the window of bitmaps: character by character.
    size_t slow_run(size_t position, RunClass run_class) const {
        for (Char c = at(position); c.length > 0 && belongs(c.cls, run_class); c = at(position)) position += c.length;
        return position;
    }
    static bool belongs(CharClass cls, RunClass run_class) {
        switch (run_class) {
            case kLetterRun: return cls & kLetter;
            case kNumberRun: return cls & kNumber;
            case kSpaceRun: return cls & kSpace;
            case kSymbolRun: return !(cls & (kSpace | kLetter | kNumber));
            case kUpperSetRun: return cls & kUpperSet;
            case kLowerSetRun: return cls & kLowerSet;
            default: break;  // no scanner asks for runs of the others
        }
        return false;
    }

    const uint8_t* data_;
    size_t size_;
    const ClassBitmaps& bitmaps_;
};

inline bool is_symbol(CharClass cls) {
    return !(cls & (kSpace | kLetter | kNumber));
}  // [^\s\p{L}\p{N}]

// The length of an English contraction's ending at `position`, apostrophe included, or 0: 's 'd 'm 't 'll 've 're.
// Ignoring case, 's also matches 'ſ (U+017F, two bytes), whose simple case folding is s.
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

// \p{N}{1,3}: the end of at most three numbers.
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
        const uint8_t last = text.byte(end - 1);
        if (last == '\n' || last == '\r') return end;
    }
    return 0;
}

// \s+(?!\S)|\s: white space to the end of the text, else all but its last character, else that character alone.
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

inline size_t next_cl100k(const Text& text, size_t begin) {
    if (const size_t length = contraction<true>(text, begin)) return begin + length;
    const Text::Char first = text.at(begin);
    if (first.cls & kLetter) return text.run(begin, kLetterRun);
    if (first.cls & kNumber) return up_to_three_numbers(text, begin);
    if (!(first.cls & kNewline) && text.at(begin + first.length).cls & kLetter) {
        return text.run(begin + first.length, kLetterRun);
    }
    const size_t symbols = begin + (text.byte(begin) == ' ');
    if (!text.at_end(symbols) && is_symbol(text.at(symbols).cls)) {
        size_t end = text.run(symbols, kSymbolRun);
        while (text.byte(end) == '\r' || text.byte(end) == '\n') ++end;
        return end;
    }
    const SpaceRun run = read_spaces(text, begin);
    if (!text.at_end(run.end)) {  // \s++$ comes before \s*[\r\n]
        if (const size_t end = after_last_newline(text, run)) return end;
    }
    return end_of_spaces(text, run);
}

// The first two alternatives of o200k after their optional first character: words that are cut where upper case
// follows lower case. With U = [Lu Lt Lm Lo M] and L = [Ll Lm Lo M], the end of U*L+ or else U+L* from `begin`, or 0
// if neither matches.
//
// Backtracking, spelled out: let u be the end of the run of U. A character of L at u (it must be Ll) extends the match
// to the end of the run of L. Otherwise U* gives back characters until one is in L: the last such character of the run
// ends the match, since what follows it is in U only. Otherwise U+L* matches the run of U.
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

inline size_t upper_word(const Text& text, size_t begin) {  // U+L*; called only where U*L+ failed, so that L* is empty
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
        while (text.byte(end) == '\r' || text.byte(end) == '\n' || text.byte(end) == '/') ++end;
        return end;
    }
    const SpaceRun run = read_spaces(text, begin);
    const size_t end = after_last_newline(text, run);
    return end ? end : end_of_spaces(text, run);
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

}  // namespace fastcompress::pretokenizer
