// Memory for results of megabytes, in pages of 2 MiB, and used again: a few of the blocks that were freed are kept.
//
// The system clears every page it hands out, which took 7 to 30 % of the time of encoding the text whose ids filled it
// (benchmarks/LOG.md), and a program that encodes one batch after the other frees as much each time. So up to kNumSpares
// freed blocks are kept for reuse. A block takes four times as much address space as was asked for at most, which is
// never touched, so that a block also serves for a somewhat larger result; of a spare block at most kMaxResidentBytes
// stay resident.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#endif

namespace fastcompress {

// All functions are thread-safe, and safe in a child process after a fork.
class LargeBlocks {
  public:
    static constexpr size_t kHugePage = size_t{1} << 21;
    static constexpr size_t kMinBytes = 2 * kHugePage;
    static constexpr size_t kMaxSpareBytes = size_t{1} << 28;
    static constexpr size_t kMaxResidentBytes = size_t{1} << 24;
    static constexpr size_t kNumSpares = 4;

#if defined(__linux__)
    // At least so many bytes (>= kMinBytes), not cleared; null if there are none. For std::realloc and free() below.
    static void* allocate(size_t num_bytes) {
        for (std::atomic<void*>& spare : spares_) {
            void* block = spare.exchange(nullptr, std::memory_order_acquire);
            if (block != nullptr && malloc_usable_size(block) >= num_bytes) return block;
            std::free(block);  // too small for what is asked for now, so that it would wait in vain
        }
        void* block = nullptr;
        size_t size = size_class(num_bytes);
        if (posix_memalign(&block, kHugePage, size) != 0) {
            size = num_bytes;
            if (posix_memalign(&block, kHugePage, size) != 0) return nullptr;
        }
        madvise(block, size, MADV_HUGEPAGE);
        return block;
    }
    // The number of bytes that a block from allocate() has; at least what was asked for.
    static size_t capacity(void* block) {
        return malloc_usable_size(block);
    }
    // Gives pages back from `num_bytes` on, if those are more than one page and the block is one to be used again;
    // otherwise returns false.
    static bool trim(void* block, size_t num_bytes) {
        if (num_bytes < kHugePage || !may_be_spare(block)) return false;
        give_back_after(block, num_bytes);
        return true;
    }
    // Of any block from the C library.
    static void free(void* block) {
        if (block != nullptr && may_be_spare(block)) {
            give_back_after(block, kMaxResidentBytes);
            for (std::atomic<void*>& spare : spares_) {
                void* none = nullptr;
                if (spare.compare_exchange_strong(none, block, std::memory_order_release)) return;
            }
        }
        std::free(block);
    }

  private:
    // Few sizes, so that a block serves for most of what is asked for later.
    static size_t size_class(size_t num_bytes) {
        size_t size = kMinBytes;
        while (size < num_bytes && size < kMaxSpareBytes) size *= 4;
        return std::max(size, num_bytes);
    }
    static void give_back_after(void* block, size_t num_bytes) {
        const size_t used = (num_bytes + kHugePage - 1) / kHugePage * kHugePage;
        const size_t end = malloc_usable_size(block) / kHugePage * kHugePage;
        if (used < end) madvise(static_cast<char*>(block) + used, end - used, MADV_DONTNEED);
    }
    // std::realloc may have moved one off the border of a huge page.
    static bool may_be_spare(void* block) {
        const size_t size = malloc_usable_size(block);
        return size >= kMinBytes && size <= kMaxSpareBytes && reinterpret_cast<uintptr_t>(block) % kHugePage == 0;
    }
    static inline std::array<std::atomic<void*>, kNumSpares> spares_{};
#else
    static void* allocate(size_t num_bytes) {
        return std::malloc(num_bytes);
    }
    static size_t capacity(void*) {
        return 0;
    }
    static bool trim(void*, size_t) {
        return false;
    }
    static void free(void* block) {
        std::free(block);
    }
#endif
};

}  // namespace fastcompress
