// The classes of the characters of a text, as one bitmap per class over a window that slides along the text.
//
// With one bit per byte, the end of a run of letters takes a shift and a count of trailing ones, and all positions
// where words begin take a few operations on 64 bytes at once (boundary_bits.h). All bytes of a multi-byte character
// carry its class, so Cyrillic or Chinese text is as cheap as ASCII once the bitmaps are filled.
//
//   "déjà vu"      64 C3 A9 6A C3 A0 20 76 75
//   letters         1  1  1  1  1  1  .  1  1
//   spaces          .  .  .  .  .  .  1  .  .
//   continuation    .  .  1  .  .  1  .  .  .
//
// SIMD kernels (class_kernels.h) fill the bitmaps: first ASCII, then Han, Hangul and kana, then the characters of one
// block of 64 code points (char_blocks.h) after another. The characters left over are decoded and looked up one by one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "fastcompress/common/bytes.h"
#include "fastcompress/unicode/char_class.h"

namespace fastcompress::pretokenizer {

using namespace unicode;  // character classes, in every file of this folder

// Every character is either a letter, a number, a space or a symbol. The other classes overlap with these.
enum RunClass : uint8_t {
    kLetterRun,     // \p{L}
    kNumberRun,     // \p{N}
    kSpaceRun,      // \s
    kSymbolRun,     // [^\s\p{L}\p{N}], marks included
    kNewlineRun,    // [\r\n]
    kBlankRun,      // the character ' '
    kApostrophe,    // the character '
    kContinuation,  // the bytes of a well-formed multi-byte character after its first
    // RunFamily::kCases
    kUpperSetRun,  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
    kLowerSetRun,  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
    // RunFamily::kMarks
    kMarkedWordRun,      // [\p{L}\p{M}]
    kUnmarkedSymbolRun,  // [^\s\p{L}\p{M}\p{N}]
    // RunFamily::kScripts: Han and kana (is_han_or_kana), and all other characters
    kHanKanaWordRun,         // [\p{L}\p{M}]
    kHanKanaPunctuationRun,  // [\p{P}\p{S}]
    kOtherWordRun,           // [\p{L}\p{M}]
    kOtherPunctuationRun,    // [\p{P}\p{S}]
    kNumRunClasses,
};

// The bitmaps that a pattern needs besides those that every pattern needs. With kBytes, every byte is a character, and a
// letter from 0x80 on (common/words.h).
enum class RunFamily : uint8_t { kBasic, kCases, kMarks, kScripts, kBytes };
inline constexpr size_t kNumRunFamilies = 5;

// The classes of a family.
inline std::span<const RunClass> classes_of(RunFamily family) {
    static constexpr RunClass kCases[] = {kUpperSetRun, kLowerSetRun};
    static constexpr RunClass kMarks[] = {kMarkedWordRun, kUnmarkedSymbolRun};
    static constexpr RunClass kScripts[] = {kHanKanaWordRun, kHanKanaPunctuationRun, kOtherWordRun,
                                            kOtherPunctuationRun};
    switch (family) {
        case RunFamily::kCases: return kCases;
        case RunFamily::kMarks: return kMarks;
        case RunFamily::kScripts: return kScripts;
        case RunFamily::kBasic:
        case RunFamily::kBytes: break;
    }
    return {};
}

// Whether a character belongs to a class. Only for the classes whose runs scanners read.
inline bool belongs(CharClass cls, uint32_t code_point, RunClass run_class) {
    switch (run_class) {
        case kLetterRun: return cls & kLetter;
        case kNumberRun: return cls & kNumber;
        case kSpaceRun: return cls & kSpace;
        case kSymbolRun: return !(cls & (kSpace | kLetter | kNumber));
        case kUpperSetRun: return cls & kUpperSet;
        case kLowerSetRun: return cls & kLowerSet;
        case kMarkedWordRun: return cls & (kLetter | kMark);
        case kUnmarkedSymbolRun: return !(cls & (kSpace | kLetter | kMark | kNumber));
        case kHanKanaWordRun: return cls & (kLetter | kMark) && is_han_or_kana(code_point);
        case kHanKanaPunctuationRun: return cls & kPunctuation && is_han_or_kana(code_point);
        case kOtherWordRun: return cls & (kLetter | kMark) && !is_han_or_kana(code_point);
        case kOtherPunctuationRun: return cls & kPunctuation && !is_han_or_kana(code_point);
        default: break;  // no scanner reads runs of the others
    }
    return false;
}

struct CharBlock;

class ClassBitmaps {
  public:
    static constexpr size_t kWindowBytes = 4096;
    static constexpr size_t kWords = kWindowBytes / 64;
    // The window moves on when fewer bytes than this are left of it, so only longer runs can cross its end.
    static constexpr size_t kMarginBytes = 512;

    // Fills the bitmaps that every pattern needs, and those of the family.
    ClassBitmaps(Bytes text, RunFamily family) : text_(text), family_(family) { fill(0); }

    // Makes the window contain `position`, a character boundary, and the margin after it or the end of the text.
    void move_to(size_t position) {
        if (position + kMarginBytes > end_ && end_ < text_.size()) fill(position);
    }
    // Makes the window begin at `position`, a character boundary.
    void begin_at(size_t position) {
        if (position != begin_) fill(position);
    }

    // The end of the run of the class from `position` on, which must lie in the window. If the result is end(), the run
    // may continue past the window.
    size_t run_end(RunClass run_class, size_t position) const {
        const uint64_t* words = row(run_class);
        size_t offset = position - begin_;
        for (;;) {
            const size_t word = offset / 64;
            const size_t shift = offset % 64;
            // 64 bits from any offset consist of parts of two words. The last word is followed by a zero.
            const uint64_t bits = words[word] >> shift | words[word + 1] << 1 << (63 - shift);
            const auto ones = static_cast<size_t>(std::countr_one(bits));
            offset += ones;
            if (ones < 64) return std::min(begin_ + offset, end_);
        }
    }
    size_t begin() const { return begin_; }
    size_t end() const { return end_; }
    Bytes text() const { return text_; }
    bool all_ascii() const { return all_ascii_; }
    // Bit i of word w is for byte begin() + 64 w + i. Word -1 is zero, and so are the words from the last one on up to
    // the next multiple of eight, and one more.
    const uint64_t* row(RunClass run_class) const { return rows_[run_class].data() + 1; }

  private:
    void fill(size_t begin);
    template <class Visit>
    void for_each_row(const Visit& visit);
    void classify_ascii(const uint8_t* bytes, size_t word, size_t num_words);
    void fill_beyond_ascii(size_t num_words);
    struct Taken {
        uint64_t here, next;  // bytes of this word and the next
    };
    static Taken spread(uint64_t firsts, bool has_three);
    void set(RunClass run_class, size_t word, const Taken& taken);
    Taken add_east_asian(size_t word);
    struct BlockQuery {  // the characters of a block: `length` bytes each, of which all but the last are in `bytes`
        uint8_t bytes[2];
        uint32_t length;
        const CharBlock* block;
    };
    BlockQuery block_of(size_t offset) const;
    Taken add_block(size_t word, const BlockQuery& query);
    size_t add_character(size_t offset);
    uint64_t* mutable_row(RunClass run_class) { return rows_[run_class].data() + 1; }

    Bytes text_;
    RunFamily family_;
    bool all_ascii_ = true;
    size_t begin_ = 0;
    size_t end_ = 0;  // a character boundary, or the end of the text
    std::array<std::array<uint64_t, 1 + kWords + 2>, kNumRunClasses> rows_;
    std::array<uint64_t, kWords> beyond_;  // the bytes that are not ASCII
};

}  // namespace fastcompress::pretokenizer
