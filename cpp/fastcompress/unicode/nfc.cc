#include "fastcompress/unicode/nfc.h"

#include <algorithm>
#include <cstring>

#include "fastcompress/unicode/text_tables.h"
#include "fastcompress/unicode/utf8.h"

namespace fastcompress::unicode {
namespace {

// Hangul syllables are composed of letters by arithmetic (The Unicode Standard, chapter 3.12).
constexpr uint32_t kFirstSyllable = 0xac00, kNumSyllables = 11172;
constexpr uint32_t kFirstLead = 0x1100, kNumLeads = 19;
constexpr uint32_t kFirstVowel = 0x1161, kNumVowels = 21;
constexpr uint32_t kBeforeFirstTail = 0x11a7, kNumTails = 28;  // kBeforeFirstTail stands for no tail

uint32_t compose(uint32_t first, uint32_t second) {
    if (first - kFirstLead < kNumLeads && second - kFirstVowel < kNumVowels) {
        return kFirstSyllable + ((first - kFirstLead) * kNumVowels + (second - kFirstVowel)) * kNumTails;
    }
    if (first - kFirstSyllable < kNumSyllables && (first - kFirstSyllable) % kNumTails == 0 &&
        second - kBeforeFirstTail - 1 < kNumTails - 1) {
        return first + (second - kBeforeFirstTail);
    }
    const auto key = [](const Composition& composition) {
        return uint64_t{composition.first} << 32 | composition.second;
    };
    const uint64_t wanted = uint64_t{first} << 32 | second;
    const auto found = std::ranges::lower_bound(kCompositions, wanted, {}, key);
    return found != kCompositions.end() && key(*found) == wanted ? found->composed : kInvalidCodePoint;
}

// A character and its combining class.
struct Letter {
    uint32_t code_point;
    uint32_t combining_class;
};

void append_decomposed(uint32_t code_point, std::vector<Letter>& letters) {
    const auto found = std::ranges::lower_bound(kDecompositions, code_point, {}, &Decomposition::code_point);
    if (found == kDecompositions.end() || found->code_point != code_point) {
        letters.push_back({code_point, nfc_class_of(code_point).combining_class});
        return;
    }
    for (uint32_t i = 0; i < found->length; ++i) {
        const uint32_t letter = kDecompositionLetters[found->begin + i];
        letters.push_back({letter, nfc_class_of(letter).combining_class});
    }
}

void order_canonically(std::vector<Letter>& letters) {
    for (auto begin = letters.begin(); begin != letters.end();) {
        begin = std::find_if(begin, letters.end(), [](Letter letter) { return letter.combining_class != 0; });
        const auto end = std::find_if(begin, letters.end(), [](Letter letter) { return letter.combining_class == 0; });
        if (!std::ranges::is_sorted(begin, end, {}, &Letter::combining_class)) {
            std::ranges::stable_sort(begin, end, {}, &Letter::combining_class);
        }
        begin = end;
    }
}

// Composes each letter with the last starter, unless a letter of the same or a larger class stands between them.
void compose_canonically(std::vector<Letter>& letters) {
    constexpr size_t kNoStarter = SIZE_MAX;
    size_t starter = kNoStarter;
    size_t size = 0;
    uint32_t least_open = 0;  // letters of this class or a larger one can reach the starter
    for (const Letter letter : letters) {
        if (starter != kNoStarter && letter.combining_class >= least_open) {
            const uint32_t composed = compose(letters[starter].code_point, letter.code_point);
            if (composed != kInvalidCodePoint) {
                letters[starter].code_point = composed;
                continue;
            }
        }
        if (letter.combining_class == 0) {
            starter = size;
            least_open = 0;
        } else {
            least_open = letter.combining_class + 1;
        }
        letters[size++] = letter;
    }
    letters.resize(size);
}

void append_utf8(uint32_t code_point, std::vector<uint8_t>& out) {
    uint8_t bytes[4];
    out.insert(out.end(), bytes, write_utf8(code_point, bytes));
}

// Returns the first position from `begin` on whose byte is not ASCII.
size_t skip_ascii(Bytes text, size_t begin) {
    size_t i = begin;
    for (; i + 8 <= text.size(); i += 8) {
        uint64_t word;
        std::memcpy(&word, text.data() + i, 8);
        if ((word & 0x8080808080808080u) != 0) break;
    }
    while (i < text.size() && text[i] < 0x80) ++i;
    return i;
}

// A stretch of a text that NFC may change: from one inert starter up to the next.
struct Stretch {
    size_t begin;
    size_t end;
};

// Returns the first such stretch from `begin` on, or {text.size(), text.size()} if there is none. Requires that an
// inert starter begins at `begin`.
Stretch next_stretch(Bytes text, size_t begin) {
    size_t starter = begin;
    uint32_t last_class = 0;
    bool in_order = true;
    for (size_t i = begin; i < text.size();) {
        if (text[i] < 0x80) {
            if (!in_order) return {starter, i};
            const bool is_single = i + 1 < text.size() && text[i + 1] >= 0x80;  // for example a space between words
            const size_t end = is_single ? i + 1 : skip_ascii(text, i);
            starter = end - 1;
            last_class = 0;
            i = end;
            continue;
        }
        const DecodedCodePoint c = decode_utf8(text.data(), i, text.size());
        if (is_nfc_inert(c.value)) {
            if (!in_order) return {starter, i};
            starter = i;
            last_class = 0;
        } else {
            const NfcClass nfc = nfc_class_of(c.value);
            if (nfc.changes || (nfc.combining_class != 0 && nfc.combining_class < last_class)) in_order = false;
            last_class = nfc.combining_class;
        }
        i += c.length;
    }
    return in_order ? Stretch{text.size(), text.size()} : Stretch{starter, text.size()};
}

void append_nfc(Bytes stretch, std::vector<Letter>& letters, std::vector<uint8_t>& out) {
    letters.clear();
    size_t i = 0;
    // Only the first character can be a stray byte, since stray bytes are inert starters. It is copied, and composes
    // with nothing.
    if (decode_utf8(stretch.data(), 0, stretch.size()).value == kInvalidCodePoint) out.push_back(stretch[i++]);
    while (i < stretch.size()) {
        const DecodedCodePoint c = decode_utf8(stretch.data(), i, stretch.size());
        append_decomposed(c.value, letters);
        i += c.length;
    }
    order_canonically(letters);
    compose_canonically(letters);
    for (const Letter letter : letters) append_utf8(letter.code_point, out);
}

}  // namespace

bool normalize_nfc(Bytes text, std::vector<uint8_t>& out) {
    std::vector<Letter> letters;
    std::vector<uint8_t> normal;  // the form C of one stretch
    std::vector<uint8_t> result;  // moved to `out` once it is complete
    bool changed = false;
    size_t copied = 0;  // the part of the text that is in `result`
    for (size_t begin = 0; begin < text.size();) {
        const Stretch stretch = next_stretch(text, begin);
        begin = stretch.end;
        if (stretch.begin == text.size()) break;
        const Bytes bytes = text.subspan(stretch.begin, stretch.end - stretch.begin);
        normal.clear();
        append_nfc(bytes, letters, normal);
        if (std::ranges::equal(normal, bytes)) continue;
        changed = true;
        result.insert(result.end(), text.begin() + static_cast<std::ptrdiff_t>(copied),
                      text.begin() + static_cast<std::ptrdiff_t>(stretch.begin));
        result.insert(result.end(), normal.begin(), normal.end());
        copied = stretch.end;
    }
    if (!changed) return false;
    result.insert(result.end(), text.begin() + static_cast<std::ptrdiff_t>(copied), text.end());
    out = std::move(result);
    return true;
}

}  // namespace fastcompress::unicode
