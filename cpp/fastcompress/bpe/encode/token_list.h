// The tokens of a pretoken while it is merged: a doubly linked list over the positions of its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// A token is named by the position where it begins; position i of a token that was merged into one before it means
// nothing. The first token begins at 0, and size() comes after the last one.
class TokenList {
  public:
    // Begins with the tokens of single bytes. O(n).
    void assign(const Vocabulary& vocabulary, Bytes bytes) {
        const size_t size = bytes.size();
        ids_.resize(size);
        previous_.resize(size);
        next_.resize(size);
        for (uint32_t i = 0; i < size; ++i) {
            ids_[i] = vocabulary.byte_token(bytes[i]);
            previous_[i] = i - 1;
            next_[i] = i + 1;
        }
    }
    uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
    TokenId id(uint32_t i) const { return ids_[i]; }
    uint32_t next(uint32_t i) const { return next_[i]; }
    uint32_t previous(uint32_t i) const { return previous_[i]; }  // i > 0

    // Merges the token at i with the next one; returns where that one began.
    uint32_t merge(uint32_t i, TokenId result) {
        const uint32_t merged = next_[i];
        const uint32_t after = next_[merged];
        ids_[i] = result;
        next_[i] = after;
        if (after < ids_.size()) previous_[after] = i;
        return merged;
    }

  private:
    std::vector<TokenId> ids_;
    std::vector<uint32_t> previous_, next_;
};

}  // namespace fastcompress::bpe
