// An array of fixed size for large tables that are read at random, aligned to pages of 2 MiB and, if the system
// provides them, in such pages.
//
// With pages of 4 KiB, a lookup in a table of megabytes also misses the TLB, which costs as much as loading the data.
// Linux provides huge pages if they are requested before the memory is first touched; elsewhere, and for small arrays,
// this is ordinary memory. In both cases pages are cleared when they are first touched, so an array may be larger than
// needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace fastcompress {

template <class T>
class HugeArray {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64);

  public:
    // Empty, without memory.
    HugeArray() = default;
    // Filled with zero bytes. Throws std::bad_alloc.
    explicit HugeArray(size_t size) : size_(size) {
        if (size > kMaxBytes / sizeof(T)) throw std::bad_alloc();
        const size_t num_bytes = size * sizeof(T);
        void* memory = map_huge(num_bytes);
        if (memory) {
            data_.get_deleter().mapped_bytes = round_to_pages(num_bytes);
        } else {
            size_t space = num_bytes + kAlignment;
            memory = data_.get_deleter().allocated = std::calloc(1, space);
            if (!memory) throw std::bad_alloc();
            std::align(kAlignment, num_bytes, memory, space);
        }
        data_.reset(static_cast<T*>(memory));
    }
    // A moved-from array is empty.
    HugeArray(HugeArray&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
    HugeArray& operator=(HugeArray&& other) noexcept {
        data_ = std::move(other.data_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }
    size_t size() const { return size_; }
    T& operator[](size_t i) const { return data_[i]; }

  private:
    static constexpr size_t kHugePage = size_t{1} << 21;
    static constexpr size_t kAlignment = 64;
    static constexpr size_t kMaxBytes = size_t{1} << 62;  // so that no sum of sizes here overflows

    // Maps zeroed memory aligned to huge pages; null for small arrays and where the system has none.
    static void* map_huge(size_t num_bytes) {
#if defined(__linux__)
        if (num_bytes < kHugePage) return nullptr;
        // One huge page more than needed, to cut an aligned piece from.
        void* mapped = mmap(nullptr, num_bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return nullptr;
        auto* const begin = static_cast<uint8_t*>(mapped);
        const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(mapped) % kHugePage) % kHugePage;
        if (before > 0) munmap(begin, before);
        const size_t used = before + round_to_pages(num_bytes);
        const size_t mapped_bytes = round_to_pages(num_bytes + kHugePage);
        if (used < mapped_bytes) munmap(begin + used, mapped_bytes - used);
        madvise(begin + before, num_bytes, MADV_HUGEPAGE);
        return begin + before;
#else
        (void)num_bytes;
        return nullptr;
#endif
    }
    // Pages have 4, 16 or 64 KiB, by system.
    static size_t round_to_pages(size_t num_bytes) {
#if defined(__linux__)
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        return (num_bytes + page - 1) / page * page;
#else
        return num_bytes;
#endif
    }

    struct Release {
        size_t mapped_bytes = 0;
        void* allocated = nullptr;
        void operator()(T* memory) const {
#if defined(__linux__)
            if (mapped_bytes > 0) {
                munmap(memory, mapped_bytes);
                return;
            }
#endif
            (void)memory;
            std::free(allocated);
        }
    };
    std::unique_ptr<T[], Release> data_;
    size_t size_ = 0;
};

}  // namespace fastcompress
