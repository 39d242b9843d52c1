// Finds the pretokens of a text, several hundred at a time.
#pragma once

#include <array>

#include "fastcompress/pretokenizer/boundary_bits.h"
#include "fastcompress/pretokenizer/class_bitmaps.h"
#include "fastcompress/pretokenizer/pattern.h"
#include "fastcompress/pretokenizer/scanner_deepseek.h"
#include "fastcompress/pretokenizer/scanners.h"

namespace fastcompress::pretokenizer {

// How the pretokens of a pattern are found. The scanner can find all of them; boundary bits only make it faster.
struct Method {
    RunFamily family;                                   // the bitmaps that the scanner reads
    size_t (*scanner)(const Text& text, size_t begin);  // null for kNone
    bool has_bits;
    BoundaryRules rules;
};
Method method_of(Pattern pattern);

// Takes about 30 KiB, so that it can be a local variable. One object serves one text.
class PretokenFinder {
  public:
    PretokenFinder(Pattern pattern, Bytes text);

    // Moves on to the next pretokens, at least one. Returns false at the end of the text.
    bool next();

    // The pretokens found fill [begin(), end()), and pretoken i ends at begin() + ends()[i]. For the last one use
    // end(): an offset of 4 GiB or more does not fit into ends().
    size_t begin() const { return begin_; }
    size_t end() const { return end_; }
    std::span<const uint32_t> ends() const { return {ends_.data(), count_}; }

  private:
    void find_by_bits();
    void find_by_scanner();
    void copy_boundaries(size_t begin, size_t end);
    size_t scan_past(size_t uncertain, size_t limit);
    void add(size_t end);

    Bytes text_;
    Method method_;
    ClassBitmaps bitmaps_;
    Text reader_;
    BoundaryBits bits_;
    size_t begin_ = 0;
    size_t end_ = 0;
    size_t count_ = 0;
    std::array<uint32_t, ClassBitmaps::kWindowBytes + 64> ends_;  // copy_boundaries may write up to 64 more
};

}  // namespace fastcompress::pretokenizer
