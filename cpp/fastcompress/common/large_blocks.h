// Memory for results of megabytes, in pages of 2 MiB, and used again: a few of the blocks that were freed are kept.
//
// The system clears every page it hands out, which took 7 % of the time of encoding the text whose ids filled it
// (benchmarks/LOG.md), and a program that encodes one batch after the other frees as much each time. So up to kNumSpares
// blocks of at most kMaxSpareBytes wait for the next to ask, and are resident as far as they were written to.
#pragma once

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
    static constexpr size_t kMaxSpareBytes = size_t{1} << 25;
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
        if (posix_memalign(&block, kHugePage, num_bytes) != 0) return nullptr;
        madvise(block, num_bytes, MADV_HUGEPAGE);
        return block;
    }
    // Gives pages back from `num_bytes` on, if those are more than one page and the block is one to be used again;
    // otherwise returns false.
    static bool trim(void* block, size_t num_bytes) {
        if (num_bytes < kHugePage || !may_be_spare(block)) return false;
        const size_t used = (num_bytes + kHugePage - 1) / kHugePage * kHugePage;
        const size_t end = malloc_usable_size(block) / kHugePage * kHugePage;
        if (used < end) madvise(static_cast<char*>(block) + used, end - used, MADV_DONTNEED);
        return true;
    }
    // Of any block from the C library.
    static void free(void* block) {
        if (block != nullptr && may_be_spare(block)) {
            for (std::atomic<void*>& spare : spares_) {
                void* none = nullptr;
                if (spare.compare_exchange_strong(none, block, std::memory_order_release)) return;
            }
        }
        std::free(block);
    }

  private:
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
    static bool trim(void*, size_t) {
        return false;
    }
    static void free(void* block) {
        std::free(block);
    }
#endif
};

}  // namespace fastcompress
