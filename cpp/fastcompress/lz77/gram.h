// The first min_length bytes at a position, which two positions must share for one to be an occurrence of the other.
#pragma once

#include <algorithm>

#include "fastcompress/common/hash.h"
#include "fastcompress/lz77/text_compare.h"

namespace fastcompress::lz77 {

class Gram {
  public:
    explicit Gram(uint32_t size) : size_(size), mask_(size < 8 ? (uint64_t{1} << 8 * size) - 1 : ~uint64_t{0}) {}

    // Returns a hash of `bits` bits. It differs from process to process, so texts whose hashes collide cannot be
    // prepared. Reads size() bytes, and depends on these only.
    size_t hash(const uint8_t* p, int bits) const {
        uint64_t hash = first_word(p);
        for (uint32_t i = 8; i < size_; i += 8) hash = fold_multiply(hash ^ seed_, word(p + i, size_ - i));
        return hash * (seed_ | 1) >> (64 - bits);
    }
    // The same for a word of 8 bytes loaded from the position. Requires size() <= 8.
    size_t hash_of_word(uint64_t word, int bits) const { return (word & mask_) * (seed_ | 1) >> (64 - bits); }
    // Whether the grams in two such words are equal. Requires size() <= 8.
    bool equal_words(uint64_t a, uint64_t b) const { return ((a ^ b) & mask_) == 0; }
    bool equal(const uint8_t* a, const uint8_t* b) const {
        return first_word(a) == first_word(b) && (size_ <= 8 || std::memcmp(a + 8, b + 8, size_ - 8) == 0);
    }
    uint32_t size() const { return size_; }

  private:
    static uint64_t word(const uint8_t* p, uint32_t size) {
        uint64_t word = 0;
        std::memcpy(&word, p, std::min<uint32_t>(size, 8));
        return word;
    }
    uint64_t first_word(const uint8_t* p) const {
        switch (size_) {  // loads of constant size take one or two instructions
            case 1: return *p;
            case 2: return word(p, 2);
            case 3: return word(p, 2) | uint64_t{p[2]} << 16;
            case 4: return word(p, 4);
            default: break;
        }
        return size_ >= 8 ? load_word(p) : word(p, size_);
    }
    uint32_t size_;
    uint64_t mask_;
    uint64_t seed_ = hash_seed();
};

}  // namespace fastcompress::lz77
