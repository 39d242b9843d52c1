// A growing array that can be copied at once: copies share what they have in common.
//
// A tree of small nodes that several copies may own. Whoever sets a value first makes its own copy of the nodes on the
// way to it that others own too, so n values set after a copy cost O(n log n) memory and time at most.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace fastcompress::lz77 {

template <class T>
class PersistentArray {
  public:
    // T{} if it was never set.
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

    // The node, which nobody else owns afterwards.
    template <class Node>
    static Node& own(std::shared_ptr<void>& node) {
        if (!node) {
            node = std::make_shared<Node>();
        } else if (node.use_count() > 1) {
            node = std::make_shared<Node>(*static_cast<const Node*>(node.get()));
        } else {
            // Whoever gave it up last, maybe in another thread, has read it before.
            std::atomic_thread_fence(std::memory_order_acquire);
        }
        return *static_cast<Node*>(node.get());
    }

    std::shared_ptr<void> root_;
    int shift_ = 0;  // of the index, at the root; 0: the root is a leaf
};

// The same where what was there before the first copy is many values, and most copies add few: those are an ordinary
// vector, which copies only read. For whoever is not copied it is as fast as one.
template <class T>
class ForkableVector {
  public:
    size_t size() const { return size_; }
    T operator[](size_t i) const {
        return i < base_size_ ? (*base_)[i] : added_.get(static_cast<uint32_t>(i - base_size_));
    }
    T back() const { return (*this)[size_ - 1]; }
    void push_back(const T& value) {
        if (size_ == base_size_ && base_.use_count() == 1) {
            std::atomic_thread_fence(std::memory_order_acquire);
            base_->resize(size_);
            base_->push_back(value);
            base_size_ = ++size_;
            return;
        }
        added_.set(static_cast<uint32_t>(size_ - base_size_), value);
        ++size_;
        if (size_ - base_size_ > std::max<size_t>(kFew, base_size_)) flatten();
    }
    void pop_back() { truncate(size_ - 1); }
    void truncate(size_t size) {
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

    std::shared_ptr<std::vector<T>> base_ = std::make_shared<std::vector<T>>();
    size_t base_size_ = 0;  // how much of it belongs to this one
    PersistentArray<T> added_;
    size_t size_ = 0;
};

}  // namespace fastcompress::lz77
