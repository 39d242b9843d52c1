// An allocator for std::vector that takes large arrays from LargeBlocks, so that the system need not clear their pages
// for every result.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#include "fastcompress/common/large_blocks.h"

namespace fastcompress {

template <class T>
struct LargeBlockAllocator {
    using value_type = T;

    LargeBlockAllocator() = default;
    template <class U>
    LargeBlockAllocator(const LargeBlockAllocator<U>&) {}

    T* allocate(size_t size) {
        if (size > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_alloc();
        const size_t num_bytes = size * sizeof(T);
        void* const memory =
            num_bytes < LargeBlocks::kMinBytes ? std::malloc(num_bytes) : LargeBlocks::allocate(num_bytes);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t) { LargeBlocks::free(memory); }
    // Any allocator can free the memory of any other.
    bool operator==(const LargeBlockAllocator&) const = default;
};

}  // namespace fastcompress
