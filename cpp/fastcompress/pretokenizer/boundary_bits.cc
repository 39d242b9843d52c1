#include "fastcompress/pretokenizer/boundary_bits.h"

#include <cstring>

#include "fastcompress/common/targets.h"
#include "fastcompress/pretokenizer/class_kernels.h"
#include "fastcompress/pretokenizer/scanners.h"

namespace fastcompress::pretokenizer {
namespace {

// Calls visit(offset) for each set bit in ascending order.
template <class Visit>
void for_each_bit(const uint64_t* words, size_t num_words, const Visit& visit) {
    for (size_t word = 0; word < num_words; ++word) {
        for (uint64_t left = words[word]; left != 0; left &= left - 1) {
            visit(word * 64 + static_cast<size_t>(std::countr_zero(left)));
        }
    }
}

// So many words are computed side by side, as the machine's vectors hold, or the compiler divides them.
template <size_t kWordsAtOnce>
struct WordVector;
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi"  // how functions would return them: all of these are inlined
template <>
struct WordVector<4> {
    using Type = uint64_t __attribute__((vector_size(32)));
};
template <>
struct WordVector<8> {
    using Type = uint64_t __attribute__((vector_size(64)));
};
constexpr size_t kUsualWords = 4;
#else
template <>
struct WordVector<1> {
    using Type = uint64_t;
};
constexpr size_t kUsualWords = 1;
#endif

template <class Words>
FASTCOMPRESS_INLINED Words load(const uint64_t* words) {
    Words loaded;
    std::memcpy(&loaded, words, sizeof loaded);
    return loaded;
}
template <class Words>
FASTCOMPRESS_INLINED void store(const Words& words, uint64_t* out) {
    std::memcpy(out, &words, sizeof words);
}
template <class Words>
FASTCOMPRESS_INLINED uint64_t any_of(const Words& words) {
    uint64_t separate[sizeof(Words) / sizeof(uint64_t)];
    store(words, separate);
    uint64_t any = 0;
    for (const uint64_t word : separate) any |= word;
    return any;
}

// A row of bitmaps as seen from some words: the classes of the bytes before and after each byte.
template <class Words>
struct Row {
    const uint64_t* words;
    FASTCOMPRESS_INLINED Words here() const { return load<Words>(words); }
    // All inlined, so that distances are constants where they are used.
    FASTCOMPRESS_INLINED Words before(int distance) const {  // bit i: byte i - distance
        return load<Words>(words) << distance | load<Words>(words - 1) >> (64 - distance);
    }
    FASTCOMPRESS_INLINED Words after(int distance) const {  // bit i: byte i + distance
        return load<Words>(words) >> distance | load<Words>(words + 1) << (64 - distance);
    }
};

// Adds bitmaps word by word, as numbers of many words.
struct Adder {
    uint64_t carry = 0;
    uint64_t add(uint64_t a, uint64_t b) {
        const uint64_t partial = a + b;
        const uint64_t sum = partial + carry;
        carry = (partial < a) | (sum < partial);
        return sum;
    }
};

uint64_t find_slashes(Bytes window, size_t word) {
    const Bytes bytes = window.subspan(64 * word);
    if (bytes.size() >= 64) return class_kernels().find_range(bytes.data(), '/', '/');
    uint64_t slashes = 0;
    for (size_t i = 0; i < bytes.size(); ++i) slashes |= uint64_t{bytes[i] == '/'} << i;
    return slashes;
}

}  // namespace

// The rules that need no more than the characters beside a boundary. Below, "start" means: the first byte of a run.
template <size_t kWordsAtOnce, BoundaryRules::WordRule kWordRule, bool kAscii>
FASTCOMPRESS_INLINED void BoundaryBits::find_local() {
    static_assert(ClassBitmaps::kWords % kWordsAtOnce == 0);
    using Words = typename WordVector<kWordsAtOnce>::Type;
    using Row = Row<Words>;
    constexpr bool kCased = kWordRule == BoundaryRules::kCasedWords;
    const bool divides_numbers = rules_.max_digits > 0;
    Words any_contraction = {}, any_absorbed = {}, any_indented = {}, any_long_number = {}, any_uncertain = {};
    for (size_t word = 0; word < num_words_; word += kWordsAtOnce) {
        const auto row = [&](RunClass run_class)
                             FASTCOMPRESS_INLINED_LAMBDA { return Row{bitmaps_->row(run_class) + word}; };
        const Row letters = row(kLetterRun);
        const Row numbers = row(kNumberRun);
        const Row spaces = row(kSpaceRun);
        const Row symbols = row(kSymbolRun);
        const Row newlines = row(kNewlineRun);
        const Row blanks = row(kBlankRun);
        const Row apostrophes = row(kApostrophe);
        const Row continuation = row(kContinuation);
        const Row upper = row(kUpperSetRun);
        const Row lower = row(kLowerSetRun);
        const Words first_bytes = kAscii ? ~Words{} : ~continuation.here();
        // For a bit that says something about the character before: the bytes between its first byte and here.
        const auto before_character = [&](const auto& at_distance) FASTCOMPRESS_INLINED_LAMBDA -> Words {
            Words bits = at_distance(1);
            if constexpr (!kAscii) {
                Words between = continuation.before(1);
                bits |= between & at_distance(2);
                between &= continuation.before(2);
                bits |= between & at_distance(3);
                between &= continuation.before(3);
                bits |= between & at_distance(4);
            }
            return bits;
        };

        const Words after_space = spaces.before(1);
        const Words after_blank = blanks.before(1);
        // In o200k words are letters and marks, and the symbols that can hold marks are looked at by the scanner.
        const auto words_at = [&](const auto& view) FASTCOMPRESS_INLINED_LAMBDA {
            return kCased ? view(upper) | view(lower) : view(letters);
        };
        const Words in_word = words_at([](const Row& r) FASTCOMPRESS_INLINED_LAMBDA { return r.here(); });
        const Words after_word = words_at([](const Row& r) FASTCOMPRESS_INLINED_LAMBDA { return r.before(1); });
        const Words in_symbols = kCased ? symbols.here() & ~in_word : symbols.here();
        const auto symbols_before = [&](int distance) FASTCOMPRESS_INLINED_LAMBDA {
            const Words bits = symbols.before(distance);
            return kCased ? bits & ~(upper.before(distance) | lower.before(distance)) : bits;
        };
        const Words after_symbols = symbols_before(1);
        const Words word_starts = in_word & ~after_word;
        const Words number_starts = numbers.here() & ~numbers.before(1);
        const Words symbol_starts = in_symbols & ~after_symbols;
        const Words space_starts = spaces.here() & ~after_space;

        Words boundaries = symbol_starts & ~after_blank;  // " ?[^\s\p{L}\p{N}]+"
        Words contractions;
        Words last_spaces;  // the last character of white space before something else: \s+(?!\S)
        const auto nonspace_after = [&](int distance) FASTCOMPRESS_INLINED_LAMBDA {
            return letters.after(distance) | numbers.after(distance) | symbols.after(distance);
        };
        {
            Words before_other = nonspace_after(1);
            if constexpr (!kAscii) {
                Words between = continuation.after(1);
                before_other &= ~between;
                before_other |= between & ~continuation.after(2) & nonspace_after(2);
                between &= continuation.after(2);
                before_other |= between & ~continuation.after(3) & nonspace_after(3);
            }
            last_spaces = spaces.here() & first_bytes & before_other;
        }
        if constexpr (kWordRule == BoundaryRules::kSpaceBefore) {
            boundaries |= (word_starts | number_starts) & ~after_blank;
            boundaries |= space_starts | last_spaces;
            // An apostrophe that begins a pretoken, before a letter.
            contractions = apostrophes.here() & symbol_starts & ~after_blank & letters.after(1);
        } else {
            // A symbol that stands alone between the pretoken before it and a word belongs to the word.
            const auto lone_symbol = [&](int distance) FASTCOMPRESS_INLINED_LAMBDA {
                return symbols_before(distance) & ~symbols_before(distance + 1) & ~blanks.before(distance + 1);
            };
            const Words after_newline = newlines.before(1);
            boundaries |= word_starts & ~(after_space & ~after_newline) & ~before_character(lone_symbol);
            boundaries |= number_starts;
            // Line breaks after symbols belong to them; what white space is left begins anew (absorb_newlines).
            const Words absorbed = newlines.here() & after_symbols;
            boundaries |= space_starts & ~absorbed;
            // White space ends after its last line break; what follows that divides again before its last character.
            boundaries |= last_spaces & ~newlines.here();
            const Words indents = spaces.here() & ~newlines.here() & after_newline;
            store(absorbed, &newlines_after_symbols_[word]);
            store(indents, &blanks_after_newlines_[word]);
            any_absorbed |= absorbed;
            any_indented |= indents;
            if constexpr (kCased) {
                const Words both_before = upper.before(1) & lower.before(1);
                const Words only_upper = upper.here() & ~lower.here() & first_bytes;
                boundaries |= only_upper & lower.before(1) & ~upper.before(1);
                // Upper case after a letter without case (or a mark) divides or not, depending on what is around;
                // a mark after symbols is one of them or begins a word.
                const Words doubtful =
                    (only_upper & both_before) | (in_word & ~letters.here() & first_bytes & after_symbols);
                store(doubtful, &uncertain_[word]);
                any_uncertain |= doubtful;
                contractions = apostrophes.here() & after_word & letters.after(1);
            } else {
                contractions = apostrophes.here() & symbol_starts & ~after_blank & letters.after(1);
            }
        }
        if (divides_numbers) {
            const Words in_number = numbers.here();
            any_long_number |= in_number & numbers.before(1) & numbers.before(2) & numbers.before(3);
            if (!kAscii || rules_.max_digits == 1) any_long_number |= in_number & numbers.before(1);
        }
        if constexpr (!kCased) store(Words{}, &uncertain_[word]);
        store(contractions, &contractions_[word]);
        any_contraction |= contractions;
        store(boundaries, &boundaries_[word]);
    }
    any_contraction_ = any_of(any_contraction);
    any_absorbed_ = any_of(any_absorbed);
    any_indented_ = any_of(any_indented);
    any_long_number_ = any_of(any_long_number);
    has_uncertain_ = any_of(any_uncertain) != 0;
}

template <size_t kWordsAtOnce>
FASTCOMPRESS_INLINED void BoundaryBits::find_by_rules() {
    const auto find_words = [&]<BoundaryRules::WordRule kWordRule>() FASTCOMPRESS_INLINED_LAMBDA {
        bitmaps_->all_ascii() ? find_local<kWordsAtOnce, kWordRule, true>()
                              : find_local<kWordsAtOnce, kWordRule, false>();
    };
    switch (rules_.words) {
        case BoundaryRules::kSpaceBefore: find_words.template operator()<BoundaryRules::kSpaceBefore>(); break;
        case BoundaryRules::kAnyBefore: find_words.template operator()<BoundaryRules::kAnyBefore>(); break;
        case BoundaryRules::kCasedWords: find_words.template operator()<BoundaryRules::kCasedWords>(); break;
    }
}

#if defined(FASTCOMPRESS_AVX2)
FASTCOMPRESS_AVX2 void BoundaryBits::find_by_rules_with_avx2() {
    find_by_rules<4>();
}
FASTCOMPRESS_AVX512 void BoundaryBits::find_by_rules_with_avx512() {
    find_by_rules<8>();
}
#endif

void BoundaryBits::find(const ClassBitmaps& bitmaps) {
    bitmaps_ = &bitmaps;
    size_ = bitmaps.end() - bitmaps.begin();
    num_words_ = (size_ + 63) / 64;
    const bool is_last = bitmaps.end() == bitmaps.text().size();
    limit_ = is_last ? size_ : size_ < 16 ? 0 : size_ - 16;  // no local rule looks further than 16 bytes
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx512()) {
        find_by_rules_with_avx512();
    } else if (has_avx2()) {
        find_by_rules_with_avx2();
    } else {
        find_by_rules<kUsualWords>();
    }
#else
    find_by_rules<kUsualWords>();
#endif
    boundaries_[num_words_] = uncertain_[num_words_] = 0;  // a contraction may end beyond the last word
    if (any_contraction_) end_contractions();
    if (any_absorbed_) absorb_newlines();
    if (any_indented_) divide_spaces();
    if (any_long_number_) divide_numbers();
    if (is_last && size_ > 0 && bitmaps.row(kSpaceRun)[(size_ - 1) / 64] >> (size_ - 1) % 64 & 1) {
        // White space at the end of the text has rules of its own.
        const uint64_t* spaces = bitmaps.row(kSpaceRun);
        for (size_t end = size_; end > 0 && spaces[(end - 1) / 64] >> (end - 1) % 64 & 1; --end) doubt(end - 1);
    }
}

// A contraction is a pretoken of its own (in o200k: the end of the word before it), and another begins after it.
void BoundaryBits::end_contractions() {
    const Text text(bitmaps_->text(), *bitmaps_);
    const bool begins_pretoken = rules_.words != BoundaryRules::kCasedWords;
    size_t last_end = 0;  // in "d's's" the second one does not follow a word, but a contraction
    for_each_bit(contractions_.data(), num_words_, [&](size_t offset) {
        if (!begins_pretoken && offset == last_end) return;
        const size_t position = bitmaps_->begin() + offset;
        const size_t length = rules_.fold_case ? contraction<true>(text, position) : contraction<false>(text, position);
        if (length == 0) return;
        last_end = offset + length;
        clear(begins_pretoken ? offset + 1 : offset, last_end);
        if (last_end <= size_) set(last_end);
    });
}

// [^\s\p{L}\p{N}]+[\r\n]* (in o200k: [\r\n/]*): the line breaks after symbols belong to them. A run of what is absorbed ends
// where a one, added at a place within it, is carried to.
void BoundaryBits::absorb_newlines() {
    const bool with_slash = rules_.words == BoundaryRules::kCasedWords;
    const Bytes window = bitmaps_->text().subspan(bitmaps_->begin(), size_);
    const uint64_t* newlines = bitmaps_->row(kNewlineRun);
    const auto is_absorbed = [&](uint8_t byte) { return byte == '\n' || byte == '\r' || (with_slash && byte == '/'); };
    Adder adder;
    uint64_t slash_before = 0;
    for (size_t word = 0; word < num_words_; ++word) {
        const uint64_t starts = newlines_after_symbols_[word];
        if ((starts | adder.carry) == 0) continue;
        const uint64_t slashes = with_slash ? find_slashes(window, word) : 0;
        const uint64_t run = newlines[word] | slashes;
        const uint64_t sum = adder.add(run, starts);
        const uint64_t ends = sum & ~run;
        boundaries_[word] &=
            ~((run & ~sum) | starts);  // a start within a run that another one began stays set in the sum
        boundaries_[word] |= ends;
        // After a slash that was absorbed, bytes that look as if symbols went on begin anew.
        const uint64_t doubtful = ends & (slashes << 1 | slash_before);
        uncertain_[word] |= doubtful;
        has_uncertain_ |= doubtful != 0;
        slash_before = slashes >> 63 & adder.carry;
    }
    size_t begin = size_;
    while (begin > 0 && is_absorbed(window[begin - 1])) --begin;
    for (; begin < size_; ++begin) {
        if (newlines_after_symbols_[begin / 64] >> begin % 64 & 1) break;
    }
    if (begin == size_) return;
    // A run that goes on past the window.
    boundaries_[size_ / 64] &= ~(uint64_t{1} << size_ % 64);
    uncertain_[size_ / 64] &= ~(uint64_t{1} << size_ % 64);
    if (limit_ < size_) limit_ = std::min(limit_, begin);
}

// White space ends after its last line break: there is a boundary after a line break that none follows.
void BoundaryBits::divide_spaces() {
    const uint64_t* spaces = bitmaps_->row(kSpaceRun);
    const uint64_t* newlines = bitmaps_->row(kNewlineRun);
    const auto is_blank = [&](size_t offset) {
        return (spaces[offset / 64] & ~newlines[offset / 64]) >> offset % 64 & 1;
    };
    const auto begin_of = [&](size_t end) {  // of the blanks before `end`
        while (end > 0 && is_blank(end - 1)) --end;
        return end;
    };
    // Few lines are all blanks, and few blanks are cut off by the end of the window: those are taken out.
    const auto take_out = [&](size_t offset) { blanks_after_newlines_[offset / 64] &= ~(uint64_t{1} << offset % 64); };
    Adder adder;
    for (size_t word = 0; word < num_words_; ++word) {
        const uint64_t starts = blanks_after_newlines_[word];
        if ((starts | adder.carry) == 0) continue;
        const uint64_t blanks = spaces[word] & ~newlines[word];
        for (uint64_t ends = adder.add(blanks, starts) & newlines[word]; ends != 0; ends &= ends - 1) {
            take_out(begin_of(64 * word + static_cast<size_t>(std::countr_zero(ends))));
        }
    }
    const size_t begin = begin_of(size_);
    if (begin < size_ && blanks_after_newlines_[begin / 64] >> begin % 64 & 1) {
        // Nobody knows yet. (At the end of the text the scanner is asked, from the first space on.)
        take_out(begin);
        if (limit_ < size_) limit_ = std::min(limit_, begin);
    }
    for (size_t word = 0; word < num_words_; ++word) boundaries_[word] |= blanks_after_newlines_[word];
}

// \p{N}{1,3}: from the start of a run of numbers, a boundary every so many characters.
void BoundaryBits::divide_numbers() {
    const uint64_t* numbers = bitmaps_->row(kNumberRun);
    const uint64_t* continuation = bitmaps_->row(kContinuation);
    uint32_t count = 0;  // characters since the last boundary
    for (size_t word = 0; word < num_words_; ++word) {
        const uint64_t starts = numbers[word] & ~(numbers[word] << 1 | numbers[static_cast<ptrdiff_t>(word) - 1] >> 63);
        for (uint64_t left = numbers[word] & ~continuation[word]; left != 0; left &= left - 1) {
            const auto bit = static_cast<size_t>(std::countr_zero(left));
            if (starts >> bit & 1) count = 0;
            if (count == rules_.max_digits) {
                set(64 * word + bit);
                count = 0;
            }
            ++count;
        }
    }
}

}  // namespace fastcompress::pretokenizer
