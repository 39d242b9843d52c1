// A growing array of token ids whose memory is not cleared first, and which can be handed to NumPy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fastcompress::bpe {

using TokenId = uint32_t;

class TokenBuffer {
  public:
    TokenBuffer() = default;
    explicit TokenBuffer(size_t capacity) { grow(capacity); }

    size_t size() const { return size_; }
    std::span<const TokenId> tokens() const { return {data_.get(), size_}; }

    // The next `count` places, writable at once; commit() says how many were written. O(1) amortized.
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
    // The same for few tokens, of which kStep more may be read: so many are copied at a time, the last ones too many. That is
    // cheaper than a call, and than to guess how many there are.
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
    void truncate(size_t size) { size_ = size; }  // size <= size()

    // Gives the memory away, never null, not much larger than what it holds; to be released with std::free.
    TokenId* release() {
        if (!data_ || capacity_ - size_ > size_ / 8 + 64) grow(std::max<size_t>(1, size_));
        size_ = capacity_ = 0;
        return data_.release();
    }

  private:
    struct Free {
        void operator()(TokenId* memory) const { std::free(memory); }
    };
    // Also shrinks.
    void grow(size_t capacity) {
        const size_t num_bytes = capacity * sizeof(TokenId);
        void* memory = nullptr;
#if defined(__linux__)
        // Pages of 2 MiB for large arrays: a fault for each of 4 KiB would take a tenth of the time of encoding.
        constexpr size_t kHugePage = size_t{1} << 21;
        if (num_bytes >= 2 * kHugePage && capacity > capacity_) {
            if (posix_memalign(&memory, kHugePage, num_bytes) != 0) throw std::bad_alloc();
            madvise(memory, num_bytes, MADV_HUGEPAGE);
            if (size_ > 0) std::memcpy(memory, data_.get(), size_ * sizeof(TokenId));
            data_.reset(static_cast<TokenId*>(memory));
            capacity_ = capacity;
            return;
        }
#endif
        memory = std::realloc(data_.get(), num_bytes);
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
