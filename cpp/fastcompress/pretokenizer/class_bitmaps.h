// Which bytes of a text belong to which class of characters, as bitmaps over a window that slides along the text.
//
// A scanner spends its time looking for the end of a run: of letters, of symbols. With one bit a byte that is a shift
// and a count of trailing ones instead of a loop whose exit nobody can predict. All bytes of a multi-byte character
// carry its class, so a run of Cyrillic or Chinese ends as cheaply as a run of ASCII.
//
// Filling: 16 bytes at a time by comparisons for ASCII (SSE2 on x86-64, NEON on 64-bit ARM, a table elsewhere);
// characters past ASCII are decoded one by one and set in all bitmaps.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "fastcompress/common/bytes.h"
#include "fastcompress/pretokenizer/char_class.h"

namespace fastcompress::pretokenizer {

// The classes that patterns look for runs of. Letters, numbers, spaces and symbols divide all characters.
enum RunClass : uint8_t {
    kLetterRun,
    kNumberRun,
    kSpaceRun,
    kSymbolRun,    // [^\s\p{L}\p{N}]
    kUpperSetRun,  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], filled for o200k only
    kLowerSetRun,  // [\p{Ll}\p{Lm}\p{Lo}\p{M}], filled for o200k only
    kNumRunClasses,
};

class ClassBitmaps {
  public:
    static constexpr size_t kWindowBytes = 4096;
    // The window moves on when less than this is left of it: so only runs longer than that can cross its end.
    static constexpr size_t kMarginBytes = 512;

    // with_case: fill the two bitmaps that only o200k needs.
    ClassBitmaps(Bytes text, bool with_case) : text_(text), with_case_(with_case) { fill(0); }

    // Makes the window hold `position`, a character border, with the margin after it (or the end of the text).
    void move_to(size_t position) {
        if (position + kMarginBytes > end_ && end_ < text_.size()) fill(position);
    }

    // The end of the run of the class from `position` on, which lies in the window: exact if it is less than end(),
    // else the run goes on past the window.
    size_t run_end(RunClass run_class, size_t position) const {
        const uint64_t* words = bitmaps_[run_class].data();
        size_t offset = position - begin_;
        for (;;) {
            const size_t word = offset / 64;
            const size_t shift = offset % 64;
            // Two halves, so that 64 bits can be looked at from any offset; the last word is followed by a zero.
            const uint64_t bits = words[word] >> shift | words[word + 1] << 1 << (63 - shift);
            const auto ones = static_cast<size_t>(std::countr_one(bits));
            offset += ones;
            if (ones < 64) return std::min(begin_ + offset, end_);
        }
    }
    size_t end() const { return end_; }

  private:
    void fill(size_t begin);
    size_t add_character(size_t offset);

    static constexpr size_t kWords = kWindowBytes / 64;
    Bytes text_;
    bool with_case_;
    size_t begin_ = 0;
    size_t end_ = 0;  // a character border, or the end of the text
    std::array<std::array<uint64_t, kWords + 2>, kNumRunClasses> bitmaps_;
    std::array<uint64_t, kWords> beyond_;  // not ASCII
};

}  // namespace fastcompress::pretokenizer
