// Finds the pretokens of a text, some hundreds at a time.
#pragma once

#include <array>

#include "fastcompress/pretokenizer/boundary_bits.h"
#include "fastcompress/pretokenizer/class_bitmaps.h"
#include "fastcompress/pretokenizer/pattern.h"
#include "fastcompress/pretokenizer/scanner_deepseek.h"
#include "fastcompress/pretokenizer/scanners.h"

namespace fastcompress::pretokenizer {

// How the pretokens of a pattern are found. Alone, the scanner finds all of them; the bits are there for speed.
struct Method {
    RunFamily family;                                   // what the scanner reads
    size_t (*scanner)(const Text& text, size_t begin);  // null for kNone
    bool has_bits;
    BoundaryRules rules;
};
Method method_of(Pattern pattern);

// Holds about 30 KiB: meant to live on the stack for one text.
class PretokenFinder {
  public:
    PretokenFinder(Pattern pattern, Bytes text);

    // Moves on to the next pretokens, at least one; false at the end of the text.
    bool next();

    // The pretokens found: they follow each other in [begin(), end()), and the i-th ends at begin() + ends()[i]. Use
    // end() for the last one: past 4 GiB its offset does not fit.
    size_t begin() const { return begin_; }
    size_t end() const { return end_; }
    std::span<const uint32_t> ends() const { return {ends_.data(), count_}; }

  private:
    void find_by_bits();
    void find_by_scanner();
    void copy_boundaries(size_t begin, size_t end);
    size_t scan_past(size_t offset, size_t uncertain);
    void add(size_t end);

    Bytes text_;
    Method method_;
    ClassBitmaps bitmaps_;
    Text reader_;
    BoundaryBits bits_;
    size_t begin_ = 0;
    size_t end_ = 0;
    size_t count_ = 0;
    std::array<uint32_t, ClassBitmaps::kWindowBytes + 64> ends_;  // copy_boundaries writes a word's worth at a time
};

}  // namespace fastcompress::pretokenizer
