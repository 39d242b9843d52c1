#include "fastcompress/pretokenizer/pretokenizer.h"

#include "fastcompress/pretokenizer/char_class.h"

namespace fastcompress::pretokenizer {
namespace {

constexpr PatternInfo kPatterns[] = {
    {Pattern::kGpt2, "gpt2", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {Pattern::kCl100k, "cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {Pattern::kO200k, "o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::kWhitespace, "whitespace", R"( ?\S+|\s+(?!\S)|\s+)"},
    {Pattern::kNone, "none", ""},
};

// A text read character by character. Positions are byte offsets at character borders; past the end every class is 0
// and every length 0, so that scanners need no bounds checks of their own.
class Text {
  public:
    explicit Text(Bytes bytes) : data_(bytes.data()), size_(bytes.size()) {}

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
    bool at_end(size_t position) const { return position >= size_; }

    // The end of the run of characters from `position` on for which `belongs` holds.
    template <class Belongs>
    size_t run(size_t position, const Belongs& belongs) const {
        for (Char c = at(position); c.length > 0 && belongs(c.cls); c = at(position)) position += c.length;
        return position;
    }

  private:
    const uint8_t* data_;
    size_t size_;
};

bool is_letter(CharClass cls) {
    return cls & kLetter;
}
bool is_number(CharClass cls) {
    return cls & kNumber;
}
bool is_space(CharClass cls) {
    return cls & kSpace;
}
bool is_not_space(CharClass cls) {
    return !(cls & kSpace);
}
bool is_newline(CharClass cls) {
    return cls & kNewline;
}
bool is_symbol(CharClass cls) {
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
size_t up_to_three_numbers(const Text& text, size_t position) {
    for (int i = 0; i < 3; ++i) {
        const Text::Char c = text.at(position);
        if (!is_number(c.cls)) break;
        position += c.length;
    }
    return position;
}

struct SpaceRun {
    size_t end;
    size_t last;           // where its last character begins
    size_t after_newline;  // after its last CR or LF, or 0 when it has none
};

SpaceRun read_spaces(const Text& text, size_t begin) {
    SpaceRun run{begin, begin, 0};
    for (Text::Char c = text.at(begin); is_space(c.cls); c = text.at(run.end)) {
        run.last = run.end;
        run.end += c.length;
        if (is_newline(c.cls)) run.after_newline = run.end;
    }
    return run;
}

// \s+(?!\S)|\s: white space to the end of the text, else all but its last character, else that character alone.
size_t end_of_spaces(const Text& text, size_t begin, const SpaceRun& run) {
    return text.at_end(run.end) || run.last == begin ? run.end : run.last;
}

size_t next_gpt2(Bytes bytes, size_t begin) {
    const Text text(bytes);
    if (const size_t length = contraction<false>(text, begin)) return begin + length;
    const size_t word = begin + (text.byte(begin) == ' ');  // " ?"
    const CharClass cls = text.at(word).cls;
    if (is_letter(cls)) return text.run(word, is_letter);
    if (is_number(cls)) return text.run(word, is_number);
    if (!text.at_end(word) && is_symbol(cls)) return text.run(word, is_symbol);
    return end_of_spaces(text, begin, read_spaces(text, begin));
}

size_t next_cl100k(Bytes bytes, size_t begin) {
    const Text text(bytes);
    if (const size_t length = contraction<true>(text, begin)) return begin + length;
    const Text::Char first = text.at(begin);
    if (is_letter(first.cls)) return text.run(begin, is_letter);
    if (is_number(first.cls)) return up_to_three_numbers(text, begin);
    if (!is_newline(first.cls) && is_letter(text.at(begin + first.length).cls)) {
        return text.run(begin + first.length, is_letter);
    }
    const size_t symbols = begin + (text.byte(begin) == ' ');
    if (!text.at_end(symbols) && is_symbol(text.at(symbols).cls)) {
        return text.run(text.run(symbols, is_symbol), is_newline);
    }
    const SpaceRun run = read_spaces(text, begin);
    if (!text.at_end(run.end) && run.after_newline) return run.after_newline;  // \s++$ comes before \s*[\r\n]
    return end_of_spaces(text, begin, run);
}

// The first two alternatives of o200k after their optional first character: words that are cut where upper case
// follows lower case. With U = [Lu Lt Lm Lo M] and L = [Ll Lm Lo M], the end of U*L+ or else U+L* from `begin`, or 0
// if neither matches.
//
// Backtracking, spelled out: let u be the end of the run of U. A character of L at u (it must be Ll) extends the match
// to the end of the run of L. Otherwise U* gives back characters until one is in L: the last such character of the run
// ends the match, since what follows it is in U only. Otherwise U+L* matches the run of U.
constexpr CharClass kUpperSet = kUpper | kOtherLetter | kMark;
constexpr CharClass kLowerSet = kLower | kOtherLetter | kMark;

size_t lower_word(const Text& text, size_t begin) {  // U*L+
    size_t after_last_common = 0;
    size_t end = begin;
    for (Text::Char c = text.at(begin); c.cls & kUpperSet; c = text.at(end)) {
        end += c.length;
        if (c.cls & kLowerSet) after_last_common = end;
    }
    if (text.at(end).cls & kLowerSet) return text.run(end, [](CharClass cls) -> bool { return cls & kLowerSet; });
    return after_last_common;
}

size_t upper_word(const Text& text, size_t begin) {  // U+L*; called only where U*L+ failed, so that L* is empty
    const size_t end = text.run(begin, [](CharClass cls) -> bool { return cls & kUpperSet; });
    return end > begin ? end : 0;
}

size_t next_o200k(Bytes bytes, size_t begin) {
    const Text text(bytes);
    const Text::Char first = text.at(begin);
    const bool may_precede = !(first.cls & (kNewline | kLetter | kNumber));  // [^\r\n\p{L}\p{N}]?, greedy
    for (const auto& word : {lower_word, upper_word}) {
        size_t end = may_precede ? word(text, begin + first.length) : 0;
        if (!end) end = word(text, begin);
        if (end) return end + contraction<true>(text, end);
    }
    if (is_number(first.cls)) return up_to_three_numbers(text, begin);
    const size_t symbols = begin + (text.byte(begin) == ' ');
    if (!text.at_end(symbols) && is_symbol(text.at(symbols).cls)) {
        size_t end = text.run(symbols, is_symbol);
        while (text.byte(end) == '\r' || text.byte(end) == '\n' || text.byte(end) == '/') ++end;
        return end;
    }
    const SpaceRun run = read_spaces(text, begin);
    return run.after_newline ? run.after_newline : end_of_spaces(text, begin, run);
}

size_t next_whitespace(Bytes bytes, size_t begin) {
    const Text text(bytes);
    const size_t word = begin + (text.byte(begin) == ' ');
    if (!text.at_end(word) && is_not_space(text.at(word).cls)) return text.run(word, is_not_space);
    return end_of_spaces(text, begin, read_spaces(text, begin));
}

size_t next_none(Bytes bytes, size_t) {
    return bytes.size();
}

}  // namespace

std::span<const PatternInfo> patterns() {
    return kPatterns;
}

const PatternInfo& info(Pattern pattern) {
    return kPatterns[static_cast<size_t>(pattern)];
}

std::optional<Pattern> pattern_from_name(std::string_view name) {
    for (const PatternInfo& known : kPatterns) {
        if (known.name == name) return known.pattern;
    }
    return std::nullopt;
}

NextPretoken scanner(Pattern pattern) {
    switch (pattern) {
        case Pattern::kGpt2: return next_gpt2;
        case Pattern::kCl100k: return next_cl100k;
        case Pattern::kO200k: return next_o200k;
        case Pattern::kWhitespace: return next_whitespace;
        case Pattern::kNone: return next_none;
    }
    return next_none;
}

}  // namespace fastcompress::pretokenizer
