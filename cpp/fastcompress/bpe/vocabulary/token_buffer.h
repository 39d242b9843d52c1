// A growing array of token ids. Its memory is not cleared first, and can be handed over to NumPy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "fastcompress/common/large_blocks.h"

namespace fastcompress::bpe {

using TokenId = uint32_t;

class TokenBuffer {
  public:
    TokenBuffer() = default;
    explicit TokenBuffer(size_t capacity) { grow(capacity); }
    // A moved-from buffer is empty.
    TokenBuffer(TokenBuffer&& other) noexcept
        : data_(std::move(other.data_)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    TokenBuffer& operator=(TokenBuffer&& other) noexcept {
        data_ = std::move(other.data_);
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        return *this;
    }

    size_t size() const { return size_; }
    std::span<const TokenId> tokens() const { return {data_.get(), size_}; }

    // Returns room for `count` more ids; commit() adds those that were written. O(1) amortized.
    TokenId* reserve(size_t count) {
        if (capacity_ - size_ < count) grow(std::max(size_ + count, capacity_ + capacity_ / 2));
        return data_.get() + size_;
    }
    void commit(size_t count) { size_ += count; }

    void append(std::span<const TokenId> tokens) {
        if (tokens.empty()) return;
        std::memcpy(reserve(tokens.size()), tokens.data(), tokens.size_bytes());
        commit(tokens.size());
    }
    // The same for a small number of tokens, after which kStep more can be read. Copies kStep tokens at a time, the
    // last ones in excess, which is cheaper than a call or a mispredicted branch on their number.
    template <size_t kStep>
    void append_wide(std::span<const TokenId> tokens) {
        TokenId* out = reserve(tokens.size() + kStep);
        std::memcpy(out, tokens.data(), kStep * sizeof(TokenId));
        for (size_t i = kStep; i < tokens.size(); i += kStep) {
            std::memcpy(out + i, tokens.data() + i, kStep * sizeof(TokenId));
        }
        commit(tokens.size());
    }
    void clear() { size_ = 0; }
    void truncate(size_t size) { size_ = size; }  // requires size <= size()
    // Calls body(), which appends tokens. If it throws, removes them again.
    template <class Body>
    void append_all_or_none(const Body& body) {
        const size_t before = size_;
        try {
            body();
        } catch (...) {
            truncate(before);
            throw;
        }
    }

    // Releases the memory to the caller, who must free it with LargeBlocks::free. It is never null, and little more of
    // it is resident than the ids take.
    TokenId* release() {
        const bool is_trimmed = data_ && LargeBlocks::trim(data_.get(), size_ * sizeof(TokenId));
        if (!is_trimmed && (!data_ || capacity_ - size_ > size_ / 8 + 64)) reallocate(std::max<size_t>(1, size_));
        size_ = capacity_ = 0;
        return data_.release();
    }

  private:
    struct Free {
        void operator()(TokenId* memory) const { LargeBlocks::free(memory); }
    };
    void grow(size_t capacity) {
        const size_t num_bytes = capacity * sizeof(TokenId);
        if (num_bytes < LargeBlocks::kMinBytes) return reallocate(capacity);
        auto* memory = static_cast<TokenId*>(LargeBlocks::allocate(num_bytes));
        if (!memory) throw std::bad_alloc();
        if (size_ > 0) std::memcpy(memory, data_.get(), size_ * sizeof(TokenId));
        data_.reset(memory);
        capacity_ = std::max(capacity, LargeBlocks::capacity(memory) / sizeof(TokenId));
    }
    void reallocate(size_t capacity) {
        void* memory = std::realloc(data_.get(), capacity * sizeof(TokenId));
        if (!memory) throw std::bad_alloc();
        (void)data_.release();
        data_.reset(static_cast<TokenId*>(memory));
        capacity_ = capacity;
    }

    std::unique_ptr<TokenId[], Free> data_;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

}  // namespace fastcompress::bpe
