// A growing array that can be copied in O(1): copies share what they have in common.
//
// A tree of small nodes, which several copies may share. Setting a value first copies the shared nodes on the path to
// it, so setting n values after a copy costs at most O(n log n) memory and time.
//
//   a.set(3, 'x');  b = a;  b.set(4, 'y');       a: [3] = x           b's root and second leaf are its own;
//                                                b: [3] = x, [4] = y  the first leaf belongs to both
//
// If an allocation fails, every value is what it was before the call. A value that was set since the last copy can be
// set again without an allocation. A moved-from array is empty.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fastcompress::lz77 {

template <class T>
class PersistentArray {
  public:
    PersistentArray() = default;
    PersistentArray(const PersistentArray&) = default;
    PersistentArray& operator=(const PersistentArray&) = default;
    PersistentArray(PersistentArray&& other) noexcept
        : root_(std::move(other.root_)), shift_(std::exchange(other.shift_, 0)) {}
    PersistentArray& operator=(PersistentArray&& other) noexcept {
        root_ = std::move(other.root_);
        shift_ = std::exchange(other.shift_, 0);
        return *this;
    }

    // Returns the value at an index, or T{} if it was never set.
    T get(uint32_t index) const {
        if (shift_ < 32 - kBits && index >> (shift_ + kBits) != 0) return T{};
        const void* node = root_.get();
        for (int shift = shift_; shift > 0; shift -= kBits) {
            if (node == nullptr) return T{};
            node = static_cast<const Inner*>(node)->children[index >> shift & kMask].get();
        }
        return node == nullptr ? T{} : static_cast<const Leaf*>(node)->values[index & kMask];
    }
    void set(uint32_t index, T value) {
        while (shift_ < 32 - kBits && index >> (shift_ + kBits) != 0) {
            auto root = std::make_shared<Inner>();
            root->children[0] = std::move(root_);
            root_ = std::move(root);
            shift_ += kBits;
        }
        std::shared_ptr<void>* node = &root_;
        for (int shift = shift_; shift > 0; shift -= kBits) {
            node = &own<Inner>(*node).children[index >> shift & kMask];
        }
        own<Leaf>(*node).values[index & kMask] = value;
    }
    void clear() { *this = PersistentArray(); }

  private:
    static constexpr int kBits = 4;
    static constexpr uint32_t kFanOut = 1u << kBits;
    static constexpr uint32_t kMask = kFanOut - 1;
    struct Inner {
        std::array<std::shared_ptr<void>, kFanOut> children;
    };
    struct Leaf {
        std::array<T, kFanOut> values{};
    };

    // Returns the node after making it exclusive to this array: a copy if it is shared, a new node if it does not
    // exist.
    template <class Node>
    static Node& own(std::shared_ptr<void>& node) {
        if (!node) {
            node = std::make_shared<Node>();
        } else if (node.use_count() > 1) {
            node = std::make_shared<Node>(*static_cast<const Node*>(node.get()));
        } else {
            // Synchronizes with the array that shared the node until now, perhaps in another thread.
            std::atomic_thread_fence(std::memory_order_acquire);
        }
        return *static_cast<Node*>(node.get());
    }

    std::shared_ptr<void> root_;
    int shift_ = 0;  // shift of an index at the root; 0 if the root is a leaf
};

// A growing vector that can be copied in O(1). The elements before the first copy are an ordinary vector, which copies
// only read. Each copy adds elements to a PersistentArray; when that outgrows the vector, both are merged into a new
// vector. A vector that is never copied is as fast as std::vector. On std::bad_alloc it is as before the call.
template <class T>
class ForkableVector {
  public:
    ForkableVector() = default;
    ForkableVector(const ForkableVector&) = default;
    ForkableVector& operator=(const ForkableVector&) = default;
    // A moved-from vector is empty.
    ForkableVector(ForkableVector&& other) noexcept
        : base_(std::move(other.base_)),
          base_size_(std::exchange(other.base_size_, 0)),
          added_(std::move(other.added_)),
          size_(std::exchange(other.size_, 0)) {}
    ForkableVector& operator=(ForkableVector&& other) noexcept {
        base_ = std::move(other.base_);
        base_size_ = std::exchange(other.base_size_, 0);
        added_ = std::move(other.added_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }

    size_t size() const { return size_; }
    T operator[](size_t i) const {
        return i < base_size_ ? (*base_)[i] : added_.get(static_cast<uint32_t>(i - base_size_));
    }
    T back() const { return (*this)[size_ - 1]; }
    void push_back(const T& value) {
        if (size_ - base_size_ > std::max<size_t>(kFew, base_size_)) flatten();
        if (!base_) base_ = std::make_shared<std::vector<T>>();
        if (size_ == base_size_ && base_.use_count() == 1) {
            std::atomic_thread_fence(std::memory_order_acquire);
            base_->resize(size_);
            base_->push_back(value);
            base_size_ = ++size_;
            return;
        }
        added_.set(static_cast<uint32_t>(size_ - base_size_), value);
        ++size_;
    }
    void pop_back() { truncate(size_ - 1); }
    // Requires size <= this->size(). Allocates nothing.
    void truncate(size_t size) {
        assert(size <= size_);
        if (size <= base_size_) {
            added_.clear();
            base_size_ = size;
        }
        size_ = size;
    }

  private:
    static constexpr size_t kFew = 1024;
    void flatten() {
        auto all = std::make_shared<std::vector<T>>();
        all->reserve(2 * size_);
        for (size_t i = 0; i < size_; ++i) all->push_back((*this)[i]);
        base_ = std::move(all);
        base_size_ = size_;
        added_.clear();
    }

    std::shared_ptr<std::vector<T>> base_;  // null before the first element
    size_t base_size_ = 0;                  // the number of its values that belong to this vector
    PersistentArray<T> added_;
    size_t size_ = 0;
};

}  // namespace fastcompress::lz77
