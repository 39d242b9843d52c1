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

// kWordsAtOnce words of a bitmap, which are computed side by side. A compiler splits them into vectors of the machine.
template <size_t kWordsAtOnce>
struct WordVector;
#if defined(__GNUC__)
// The warning is about how functions return such vectors. All that do are inlined here.
#pragma GCC diagnostic ignored "-Wpsabi"
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

// The bitmap of one class at some words, shifted to show the class of the bytes before or after each byte. All
// functions are inlined, so that distances are constants where they are used.
template <class Words>
struct Row {
    const uint64_t* words;
    FASTCOMPRESS_INLINED Words here() const { return load<Words>(words); }
    FASTCOMPRESS_INLINED Words before(int distance) const {  // bit i: byte i - distance
        return load<Words>(words) << distance | load<Words>(words - 1) >> (64 - distance);
    }
    FASTCOMPRESS_INLINED Words after(int distance) const {  // bit i: byte i + distance
        return load<Words>(words) >> distance | load<Words>(words + 1) << (64 - distance);
    }
};

// Adds two bitmaps as long integers, one word per call, from the lowest word up.
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

// The bitmaps that the local rules compute for some words.
template <class Words>
struct LocalBits {
    Words boundaries = {};
    Words uncertain = {};
    Words contractions = {};            // apostrophes that may begin a contraction
    Words newlines_after_symbols = {};  // line breaks that follow a symbol, which belong to it
    Words blanks_after_newlines = {};   // white space, other than a line break, that follows a line break
};

// The local rules, which look at no more than the characters beside a boundary, for kWordsAtOnce words of the bitmaps.
// A "start" is the first byte of a run of characters of one class. In a text of ASCII only, characters are bytes.
template <size_t kWordsAtOnce, BoundaryRules::WordRule kWordRule, bool kAscii>
class LocalRules {
  public:
    using Words = typename WordVector<kWordsAtOnce>::Type;

    FASTCOMPRESS_INLINED LocalRules(const ClassBitmaps& bitmaps, size_t word)
        : letters_{bitmaps.row(kLetterRun) + word},
          numbers_{bitmaps.row(kNumberRun) + word},
          spaces_{bitmaps.row(kSpaceRun) + word},
          symbols_{bitmaps.row(kSymbolRun) + word},
          newlines_{bitmaps.row(kNewlineRun) + word},
          blanks_{bitmaps.row(kBlankRun) + word},
          apostrophes_{bitmaps.row(kApostrophe) + word},
          continuation_{bitmaps.row(kContinuation) + word},
          upper_{bitmaps.row(kUpperSetRun) + word},
          lower_{bitmaps.row(kLowerSetRun) + word} {}

    FASTCOMPRESS_INLINED LocalBits<Words> find() const {
        LocalBits<Words> found;
        if constexpr (kWordRule == BoundaryRules::kKinds) {
            found.boundaries = kind_starts();
            return found;
        }
        found.boundaries = symbol_starts();
        if constexpr (kWordRule == BoundaryRules::kSpaceBefore) {
            add_words_after_spaces(found);
        } else {
            add_words_after_any_character(found);
            if constexpr (kCased) add_cased_words(found);
        }
        // An apostrophe before a letter: in o200k after a word, in the others where it begins a pretoken.
        found.contractions = apostrophes_.here() & letters_.after(1) & (kCased ? words_before() : symbol_starts());
        return found;
    }
    // Numbers that may be longer than `max_digits`, 1 or 3. Counting bytes instead of characters finds too many.
    FASTCOMPRESS_INLINED Words long_numbers(uint8_t max_digits) const {
        const Words after_number = numbers_.here() & numbers_.before(1);
        return kAscii && max_digits == 3 ? after_number & numbers_.before(2) & numbers_.before(3) : after_number;
    }

  private:
    static constexpr bool kCased = kWordRule == BoundaryRules::kCasedWords;
    using Row = pretokenizer::Row<Words>;

    FASTCOMPRESS_INLINED Words first_bytes() const { return kAscii ? ~Words{} : ~continuation_.here(); }
    // Words of gpt2 and cl100k are letters. In o200k they are letters and marks, and the scanner looks at marks that
    // may belong to the symbols before them.
    FASTCOMPRESS_INLINED Words words_here() const { return kCased ? upper_.here() | lower_.here() : letters_.here(); }
    FASTCOMPRESS_INLINED Words words_before() const {
        return kCased ? upper_.before(1) | lower_.before(1) : letters_.before(1);
    }
    FASTCOMPRESS_INLINED Words word_starts() const { return words_here() & ~words_before(); }
    FASTCOMPRESS_INLINED Words number_starts() const { return numbers_.here() & ~numbers_.before(1); }
    FASTCOMPRESS_INLINED Words space_starts() const { return spaces_.here() & ~spaces_.before(1); }
    FASTCOMPRESS_INLINED Words symbols_before(int distance) const {
        const Words bits = symbols_.before(distance);
        return kCased ? bits & ~(upper_.before(distance) | lower_.before(distance)) : bits;
    }
    // " ?[^\s\p{L}\p{N}]+": where symbols begin without a space before them.
    FASTCOMPRESS_INLINED Words symbol_starts() const {
        const Words in_symbols = kCased ? symbols_.here() & ~words_here() : symbols_.here();
        return in_symbols & ~symbols_before(1) & ~blanks_.before(1);
    }
    // A symbol that stands alone between the pretoken before it and the byte at `distance` after it.
    FASTCOMPRESS_INLINED Words lone_symbol_before(int distance) const {
        return symbols_before(distance) & ~symbols_before(distance + 1) & ~blanks_.before(distance + 1);
    }
    // The same for the character before, whose first byte may be up to four bytes back.
    FASTCOMPRESS_INLINED Words lone_symbol_before() const {
        Words bits = lone_symbol_before(1);
        if constexpr (!kAscii) {
            Words between = continuation_.before(1);  // all bytes from there to here continue the character
            bits |= between & lone_symbol_before(2);
            between &= continuation_.before(2);
            bits |= between & lone_symbol_before(3);
            between &= continuation_.before(3);
            bits |= between & lone_symbol_before(4);
        }
        return bits;
    }
    FASTCOMPRESS_INLINED Words nonspace_after(int distance) const {
        return letters_.after(distance) | numbers_.after(distance) | symbols_.after(distance);
    }
    // \s+(?!\S): the last character of white space, of up to three bytes, if something else follows it.
    FASTCOMPRESS_INLINED Words last_spaces() const {
        Words before_other = nonspace_after(1);
        if constexpr (!kAscii) {
            Words between = continuation_.after(1);
            before_other &= ~between;
            before_other |= between & ~continuation_.after(2) & nonspace_after(2);
            between &= continuation_.after(2);
            before_other |= between & ~continuation_.after(3) & nonspace_after(3);
        }
        return spaces_.here() & first_bytes() & before_other;
    }
    // words: every run of a kind, but that a space which begins a pretoken belongs to the run after it. A space begins
    // one if no white space stands before it; before the window, which begins at a boundary, none does.
    FASTCOMPRESS_INLINED Words kind_starts() const {
        const Words symbol_starts = symbols_.here() & ~symbols_.before(1);
        const Words after_lone_space = blanks_.before(1) & ~spaces_.before(2);
        return space_starts() | ((word_starts() | number_starts() | symbol_starts) & ~after_lone_space);
    }
    // gpt2: one space belongs to the word or number after it.
    FASTCOMPRESS_INLINED void add_words_after_spaces(LocalBits<Words>& found) const {
        found.boundaries |= (word_starts() | number_starts()) & ~blanks_.before(1);
        found.boundaries |= space_starts() | last_spaces();
    }
    // cl100k and o200k: one character belongs to the word after it, unless it is a letter, a number or a line break.
    FASTCOMPRESS_INLINED void add_words_after_any_character(LocalBits<Words>& found) const {
        const Words after_newline = newlines_.before(1);
        found.boundaries |= word_starts() & ~(spaces_.before(1) & ~after_newline) & ~lone_symbol_before();
        found.boundaries |= number_starts();
        // Line breaks after symbols belong to them. White space after those begins a pretoken (absorb_newlines).
        found.newlines_after_symbols = newlines_.here() & symbols_before(1);
        found.boundaries |= space_starts() & ~found.newlines_after_symbols;
        // White space ends after its last line break; what follows is divided again before its last character.
        found.boundaries |= last_spaces() & ~newlines_.here();
        found.blanks_after_newlines = spaces_.here() & ~newlines_.here() & after_newline;
    }
    // o200k: words divide where upper case follows lower case.
    FASTCOMPRESS_INLINED void add_cased_words(LocalBits<Words>& found) const {
        const Words only_upper = upper_.here() & ~lower_.here() & first_bytes();
        found.boundaries |= only_upper & lower_.before(1) & ~upper_.before(1);
        // Whether upper case after a mark or a letter without case divides a word depends on more of the text, and so
        // does whether a mark after symbols is one of them or begins a word.
        found.uncertain = (only_upper & upper_.before(1) & lower_.before(1)) |
                          (words_here() & ~letters_.here() & first_bytes() & symbols_before(1));
    }

    const Row letters_, numbers_, spaces_, symbols_, newlines_, blanks_, apostrophes_, continuation_, upper_, lower_;
};

}  // namespace

template <size_t kWordsAtOnce, BoundaryRules::WordRule kWordRule, bool kAscii>
FASTCOMPRESS_INLINED void BoundaryBits::find_local() {
    static_assert(ClassBitmaps::kWords % kWordsAtOnce == 0);
    using Rules = LocalRules<kWordsAtOnce, kWordRule, kAscii>;
    using Words = typename Rules::Words;
    Words any_contraction = {}, any_absorbed = {}, any_indented = {}, any_long_number = {}, any_uncertain = {};
    for (size_t word = 0; word < num_words_; word += kWordsAtOnce) {
        const Rules rules(*bitmaps_, word);
        const LocalBits<Words> found = rules.find();
        if (rules_.max_digits > 0) any_long_number |= rules.long_numbers(rules_.max_digits);
        store(found.boundaries, &boundaries_[word]);
        store(found.uncertain, &uncertain_[word]);
        store(found.contractions, &contractions_[word]);
        any_contraction |= found.contractions;
        any_uncertain |= found.uncertain;
        if constexpr (kWordRule == BoundaryRules::kAnyBefore || kWordRule == BoundaryRules::kCasedWords) {
            store(found.newlines_after_symbols, &newlines_after_symbols_[word]);
            store(found.blanks_after_newlines, &blanks_after_newlines_[word]);
            any_absorbed |= found.newlines_after_symbols;
            any_indented |= found.blanks_after_newlines;
        }
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
        case BoundaryRules::kKinds: find_local<kWordsAtOnce, BoundaryRules::kKinds, true>(); break;
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
    boundaries_[num_words_] = uncertain_[num_words_] = 0;  // a contraction may end after the last word
    if (any_contraction_) end_contractions();
    if (any_absorbed_) absorb_newlines();
    if (any_indented_) divide_spaces();
    if (any_long_number_) divide_numbers();
    if (is_last && size_ > 0 && rules_.words != BoundaryRules::kKinds &&
        bitmaps.row(kSpaceRun)[(size_ - 1) / 64] >> (size_ - 1) % 64 & 1) {
        // White space at the end of the text has rules of its own.
        const uint64_t* spaces = bitmaps.row(kSpaceRun);
        for (size_t end = size_; end > 0 && spaces[(end - 1) / 64] >> (end - 1) % 64 & 1; --end)
            mark_uncertain(end - 1);
    }
}

// A contraction is a pretoken (in o200k: the end of the word before it), and the next pretoken begins after it.
void BoundaryBits::end_contractions() {
    const Text text(bitmaps_->text(), *bitmaps_);
    const bool begins_pretoken = rules_.words != BoundaryRules::kCasedWords;
    size_t last_end = 0;  // in "d's's" the second contraction follows a contraction, not a word
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

// [^\s\p{L}\p{N}]+[\r\n]* (in o200k: [\r\n/]*): the line breaks after symbols belong to them. The end of a run of
// absorbed bytes is found by addition: a one that is added within the run carries to the bit after it.
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
        // A start in a run that an earlier start has entered stays set in the sum.
        boundaries_[word] &= ~((run & ~sum) | starts);
        boundaries_[word] |= ends;
        // After an absorbed slash, symbols begin a pretoken although the bits show them as going on.
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
    // The run may continue past the window.
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
    const auto begin_of = [&](size_t end) {  // where the blanks before `end` begin
        while (end > 0 && is_blank(end - 1)) --end;
        return end;
    };
    // Blanks that fill a line, and blanks that the end of the window cuts off, are removed; both are rare.
    const auto remove = [&](size_t offset) { blanks_after_newlines_[offset / 64] &= ~(uint64_t{1} << offset % 64); };
    Adder adder;
    for (size_t word = 0; word < num_words_; ++word) {
        const uint64_t starts = blanks_after_newlines_[word];
        if ((starts | adder.carry) == 0) continue;
        const uint64_t blanks = spaces[word] & ~newlines[word];
        for (uint64_t ends = adder.add(blanks, starts) & newlines[word]; ends != 0; ends &= ends - 1) {
            remove(begin_of(64 * word + static_cast<size_t>(std::countr_zero(ends))));
        }
    }
    const size_t begin = begin_of(size_);
    if (begin < size_ && blanks_after_newlines_[begin / 64] >> begin % 64 & 1) {
        // The text past the window decides. (At the end of the text, the scanner handles all white space.)
        remove(begin);
        if (limit_ < size_) limit_ = std::min(limit_, begin);
    }
    for (size_t word = 0; word < num_words_; ++word) boundaries_[word] |= blanks_after_newlines_[word];
}

// \p{N}{1,3}: a boundary after every max_digits characters of a run of numbers.
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
