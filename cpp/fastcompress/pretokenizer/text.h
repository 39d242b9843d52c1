// A text as the scanners read it: one character, or one run of a class, at a time.
#pragma once

#include "fastcompress/pretokenizer/class_bitmaps.h"
#include "fastcompress/unicode/char_class.h"

namespace fastcompress::pretokenizer {

// A text read character by character and run by run. Positions are byte offsets at character boundaries; past the end
// every class is 0 and every length 0, so that scanners need no bounds checks of their own.
class Text {
  public:
    Text(Bytes bytes, const ClassBitmaps& bitmaps) : data_(bytes.data()), size_(bytes.size()), bitmaps_(bitmaps) {}

    struct Char {
        CharClass cls;
        uint32_t length;      // bytes
        uint32_t code_point;  // or kInvalidCodePoint
    };
    Char at(size_t position) const {
        if (position >= size_) return {0, 0, kInvalidCodePoint};
        if (data_[position] < 0x80) return {kClassBlocks[data_[position]], 1, data_[position]};
        const DecodedCodePoint decoded = decode_utf8(data_, position, size_);
        return {class_of(decoded.value), decoded.length, decoded.value};
    }
    // The byte at a position, or 0 past the end. (A NUL byte looks the same; no caller searches for it.)
    uint8_t byte(size_t position) const { return position < size_ ? data_[position] : uint8_t{0}; }
    size_t size() const { return size_; }
    bool at_end(size_t position) const { return position >= size_; }

    // The end of the run of the class that begins at `position`.
    size_t run(size_t position, RunClass run_class) const {
        if (position < bitmaps_.end()) {
            position = bitmaps_.run_end(run_class, position);
            if (position < bitmaps_.end()) return position;
        }
        return slow_run(position, run_class);
    }
    // Where the character before `position` begins. Requires a position after a well-formed character.
    size_t before(size_t position) const {
        do --position;
        while ((data_[position] & 0xc0u) == 0x80u);
        return position;
    }

  private:
    // Continues a run past the window of the bitmaps, character by character.
    size_t slow_run(size_t position, RunClass run_class) const {
        for (Char c = at(position); c.length > 0 && belongs(c.cls, c.code_point, run_class); c = at(position)) {
            position += c.length;
        }
        return position;
    }

    const uint8_t* data_;
    size_t size_;
    const ClassBitmaps& bitmaps_;
};

}  // namespace fastcompress::pretokenizer
