// Finds where pretokens begin, 64 bytes at a time.
//
// A regex engine finds one pretoken after the other. But nearly every boundary of the patterns here shows in the bytes
// around it: a word begins where a letter follows something else, unless one character before it belongs to the word,
// and so on. So the boundaries of a whole window are computed from its class bitmaps by shifts and masks. With cl100k:
//   text            I ' l l _ p a y _ $ 1 2 3 4 5 .     "_" is a space
//   letters         1 . 1 1 . 1 1 1 . . . . . . . .
//   word starts     1 . 1 . . 1 . . . . . . . . . .     letters & ~(letters << 1)
//   spaces          . . . . 1 . . . 1 . . . . . . .
//   symbols         . 1 . . . . . . . 1 . . . . . 1
//   number starts   . . . . . . . . . . 1 . . . . .
//   boundaries      1 1 . . 1 . . . 1 . 1 . . 1 . 1     I|'ll| pay| $|123|45|.
// "p" begins a word, but the space before it belongs to the word; so does the lone "'" before "l", and the space before
// "$". The boundary before "4" comes from a rule that looks further. Those rules (digits in threes, line breaks after
// symbols, indentation, contractions) walk over the set bits that concern them. Where a boundary depends on more
// context, the position is marked `uncertain`, and the reader of the bitmap runs the scanner (scanners.h) from the last
// boundary before it to the first one after it.
//
// Each rule is derived beside its code; tests compare every pattern with its regex and with its scanner.
#pragma once

#include <array>

#include "fastcompress/pretokenizer/class_bitmaps.h"

namespace fastcompress::pretokenizer {

// The differences between the patterns whose boundaries are computed.
struct BoundaryRules {
    enum WordRule : uint8_t {
        kSpaceBefore,  // " ?\p{L}+", as in gpt2: one space belongs to the word, number or symbols after it
        kAnyBefore,    // "[^\r\n\p{L}\p{N}]?\p{L}+", as in cl100k: so does one other character that is not CR or LF
        kCasedWords,   // the same, but words divide where upper case follows lower case, as in o200k
        kKinds,  // runs of letters, digits, symbols and white space, as in "words"; one space belongs to the others
    };
    WordRule words = kSpaceBefore;
    uint8_t max_digits = 0;  // the number of digits per pretoken, 1 or 3; 0: numbers do not divide
    bool fold_case = false;  // contractions: (?i:'s|'t|'re|'ve|'m|'ll|'d)
};

class BoundaryBits {
  public:
    explicit BoundaryBits(BoundaryRules rules) : rules_(rules) {}

    // Computes the boundaries in the window of the bitmaps, which begins at a boundary.
    void find(const ClassBitmaps& bitmaps);

    // Bit i of word w: a pretoken begins at byte 64 w + i of the window. Correct before limit(), except at uncertain
    // positions. The bit of the window's first byte is meaningless.
    const uint64_t* boundaries() const { return boundaries_.data(); }
    const uint64_t* uncertain() const { return uncertain_.data(); }
    bool has_uncertain() const { return has_uncertain_; }
    // From this offset on, boundaries depend on text past the window. The window's size if the text ends with it.
    size_t limit() const { return limit_; }

  private:
    template <size_t kWordsAtOnce, BoundaryRules::WordRule kWordRule, bool kAscii>
    void find_local();
    template <size_t kWordsAtOnce>
    void find_by_rules();
    void find_by_rules_with_avx2();
    void find_by_rules_with_avx512();
    void end_contractions();
    void absorb_newlines();
    void divide_spaces();
    void divide_numbers();
    void set(size_t offset) { boundaries_[offset / 64] |= uint64_t{1} << offset % 64; }
    void clear(size_t begin, size_t end) {
        for (; begin < end; ++begin) boundaries_[begin / 64] &= ~(uint64_t{1} << begin % 64);
    }
    void mark_uncertain(size_t offset) {
        uncertain_[offset / 64] |= uint64_t{1} << offset % 64;
        has_uncertain_ = true;
    }

    static constexpr size_t kWords = ClassBitmaps::kWords + 1;
    BoundaryRules rules_;
    const ClassBitmaps* bitmaps_ = nullptr;
    size_t size_ = 0;
    size_t limit_ = 0;
    size_t num_words_ = 0;
    bool has_uncertain_ = false;
    std::array<uint64_t, kWords> boundaries_;
    std::array<uint64_t, kWords> uncertain_;
    // The positions where the rules that look further apply, and whether there are any.
    std::array<uint64_t, kWords> contractions_;
    std::array<uint64_t, kWords> newlines_after_symbols_;
    std::array<uint64_t, kWords> blanks_after_newlines_;
    uint64_t any_contraction_ = 0, any_absorbed_ = 0, any_indented_ = 0, any_long_number_ = 0;
};

}  // namespace fastcompress::pretokenizer
