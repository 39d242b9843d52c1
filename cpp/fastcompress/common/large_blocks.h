// Memory for results of several megabytes, in pages of 2 MiB. A few freed blocks are kept for reuse.
//
// The system clears every page that it hands out. For the ids of a text that took 7 to 30 % of the time of encoding it
// (benchmarks/LOG.md), and a program that encodes one batch after another frees as much each time. So up to kNumSpares
// freed blocks are kept for reuse. A block reserves up to four times the address space that was asked for, so that it
// can also hold a somewhat larger result later; the rest is never touched. At most kMaxResidentBytes of a spare block
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
    // Returns a block of at least num_bytes (>= kMinBytes) bytes, not cleared, or null. It can be passed to
    // std::realloc and to free() below.
    static void* allocate(size_t num_bytes) {
        for (std::atomic<void*>& spare : spares_) {
            void* block = spare.exchange(nullptr, std::memory_order_acquire);
            if (block != nullptr && malloc_usable_size(block) >= num_bytes) return block;
            std::free(block);  // too small for this request, and so probably for later ones
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
    // The number of bytes of a block from allocate(), which may be more than was asked for.
    static size_t capacity(void* block) {
        return malloc_usable_size(block);
    }
    // Returns the pages after `num_bytes` to the system. Returns false, and does nothing, if that is less than a page
    // or the block will not be reused.
    static bool trim(void* block, size_t num_bytes) {
        if (num_bytes < kHugePage || !may_be_spare(block)) return false;
        give_back_after(block, num_bytes);
        return true;
    }
    // Frees any block from the C library, or keeps it for reuse.
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
    // There are few sizes, so that a spare block serves for most later requests.
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
    // std::realloc may have moved a block off the boundary of a huge page.
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
