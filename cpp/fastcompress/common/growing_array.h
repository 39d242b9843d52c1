// A growing array for plain data that may be large. It grows by realloc, which on Linux moves the pages of a large
// block instead of copying them, so the old and the new array never exist at the same time. Memory is not cleared.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace fastcompress {

template <class T>
class GrowingArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    GrowingArray() = default;
    // A moved-from array is empty.
    GrowingArray(GrowingArray&& other) noexcept
        : data_(std::move(other.data_)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    GrowingArray& operator=(GrowingArray&& other) noexcept {
        data_ = std::move(other.data_);
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        return *this;
    }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

    // O(1) amortized.
    void push_back(T value) { *extend(1) = value; }
    void append(std::span<const T> values) { std::copy(values.begin(), values.end(), extend(values.size())); }
    // Adds `count` elements without values and returns a pointer to the first. On std::bad_alloc the array is as
    // before.
    T* extend(size_t count) {
        if (capacity_ - size_ < count) {
            if (count > kMaxSize - size_) throw std::bad_alloc();
            set_capacity(std::max(size_ + count, capacity_ + capacity_ / 2));
        }
        size_ += count;
        return data_.get() + size_ - count;
    }
    // Makes room for `count` more elements, so that adding them cannot fail. O(1) amortized.
    void reserve_more(size_t count) {
        const size_t size = size_;
        extend(count);
        size_ = size;
    }
    // Adds `count` elements of value 0 in front of all others. O(size()).
    void insert_zeros(size_t count) {
        extend(count);
        std::copy_backward(data(), data() + size_ - count, data() + size_);
        std::fill_n(data(), count, T{});
    }
    // Removes the first `count` elements. O(size()).
    void erase_front(size_t count) {
        assert(count <= size_);
        std::copy(data() + count, data() + size_, data());
        size_ -= count;
    }
    // Removes the elements from `size` on. Requires size <= size().
    void shrink(size_t size) {
        assert(size <= size_);
        size_ = size;
    }
    // Grows or shrinks the memory to `capacity` elements. Requires capacity >= size(). On std::bad_alloc the array is
    // as before.
    void set_capacity(size_t capacity) {
        assert(capacity >= size_);
        if (capacity > kMaxSize) throw std::bad_alloc();
        void* memory = std::realloc(static_cast<void*>(data_.get()), std::max<size_t>(1, capacity) * sizeof(T));
        if (!memory) throw std::bad_alloc();
        (void)data_.release();
        data_.reset(static_cast<T*>(memory));
        capacity_ = capacity;
    }

  private:
    static constexpr size_t kMaxSize = (size_t{1} << 62) / sizeof(T);  // so that sums and products do not overflow

    struct Free {
        void operator()(T* memory) const { std::free(static_cast<void*>(memory)); }
    };
    std::unique_ptr<T[], Free> data_;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

}  // namespace fastcompress
