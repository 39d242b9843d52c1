// A fixed array for large tables that are read at random: aligned to, and if the system likes in, pages of 2 MiB.
//
// With pages of 4 KiB a look-up in a table of megabytes misses the translation cache too, which costs as much as the
// data itself. Linux gives huge pages to memory that asks before it is first touched; elsewhere this is an ordinary
// aligned array.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fastcompress {

template <class T>
class HugeArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    // Zero bytes throughout.
    explicit HugeArray(size_t size) : size_(size) {
        const size_t num_bytes = size * sizeof(T);
        void* memory = ::operator new(num_bytes, alignment(num_bytes));
        data_.reset(static_cast<T*>(memory));
        data_.get_deleter().alignment = alignment(num_bytes);
#if defined(__linux__)
        if (num_bytes >= kHugePage) madvise(memory, num_bytes, MADV_HUGEPAGE);
#endif
        std::memset(memory, 0, num_bytes);
    }
    size_t size() const {
        return size_;
    }
    T& operator[](size_t i) const {
        return data_[i];
    }

  private:
    static constexpr size_t kHugePage = size_t{1} << 21;
    static std::align_val_t alignment(size_t num_bytes) {
        return std::align_val_t{num_bytes >= kHugePage ? kHugePage : size_t{64}};
    }
    struct Delete {
        std::align_val_t alignment{64};
        void operator()(T* memory) const { ::operator delete(memory, alignment); }
    };
    std::unique_ptr<T[], Delete> data_;
    size_t size_;
};

}  // namespace fastcompress
