// The bytes seen so far, and for each position the nearest one before it with the same first min_length bytes.
//
// Chains by hash, as deflate has them, but a link is never overwritten: so bytes can be taken back, last first, by
// undoing what they did. A copy shares everything with the original, and both go on from there: what was there becomes
// read only, and what each adds lies in arrays that can be copied in turn (persistent_array.h). Nobody who was never
// copied pays for that.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "fastcompress/lz77/gram.h"
#include "fastcompress/lz77/params.h"
#include "fastcompress/lz77/persistent_array.h"

namespace fastcompress::lz77 {

class History {
  public:
    static constexpr uint32_t kNone = 0xffffffffu;

    // Positions farther apart than `window` are not asked for, so the table of hashes need not be larger than it.
    History(uint32_t min_length, uint32_t window)
        : gram_(min_length), max_bits_(std::clamp(static_cast<int>(std::bit_width(window)) - 1, 8, 22)) {}

    size_t size() const { return size_; }
    // O(1) amortized.
    void push(uint8_t byte) {
        if (size_ == trunk_size_ && trunk_.use_count() == 1 && trunk_->bytes.size() == size_) [[likely]] {
            std::atomic_thread_fence(std::memory_order_acquire);
            push_in_trunk(byte);
        } else {
            push_elsewhere(byte);
        }
    }
    // size <= this->size(). O(what is taken back).
    void truncate(size_t size);

    uint8_t operator[](size_t position) const {
        return position < trunk_size_ ? trunk_->bytes[position]
                                      : added_bytes_.get(static_cast<uint32_t>(position - trunk_size_));
    }
    // Where all bytes are one array, its begin; else null.
    const uint8_t* flat() const { return size_ == trunk_size_ ? trunk_->bytes.data() : nullptr; }
    void copy(size_t begin, size_t size, uint8_t* out) const;
    bool equal_grams(size_t a, size_t b) const;
    // The nearest position before `from`, from `lowest` on, that agrees with `position` for `length` bytes, at least
    // min_length. Of those that agree for min_length bytes at most *num_left are looked at, and subtracted there. kNone
    // if none of them does.
    uint32_t find_before(size_t from, size_t position, size_t length, size_t lowest, uint32_t* num_left) const;
    // The nearest position before one, which min_length bytes begin at, whose first ones have the same hash; or kNone.
    uint32_t before(size_t position) const { return link(position) - 1; }
    // The nearest position at all whose first min_length bytes have the hash of the given ones; or kNone.
    uint32_t last_with(const uint8_t* gram) const { return head(gram_.hash(gram, trunk_->bits)) - 1; }
    const Gram& gram() const { return gram_; }

  private:
    History(const Gram& gram, int max_bits) : gram_(gram), max_bits_(max_bits) {}
    // Links are positions plus one, so 0 is none.
    struct Trunk {
        std::vector<uint8_t> bytes;
        std::vector<uint32_t> links;  // of each position that min_length bytes begin at
        std::vector<uint32_t> heads = std::vector<uint32_t>(size_t{1} << 8);
        int bits = 8;
    };
    size_t num_grams(size_t size) const { return size < gram_.size() ? 0 : size - gram_.size() + 1; }
    size_t hash_at(size_t position) const;
    uint32_t link(size_t position) const {
        const size_t in_trunk = num_grams(trunk_size_);
        return position < in_trunk ? trunk_->links[position]
                                   : added_links_.get(static_cast<uint32_t>(position - in_trunk));
    }
    uint32_t head(size_t hash) const;
    uint32_t find_in_trunk(size_t from, size_t position, size_t length, size_t lowest, uint32_t* num_left) const;
    bool agrees(size_t earlier, size_t position, size_t length) const;
    void clean_trunk();
    void push_in_trunk(uint8_t byte) {
        const size_t position = num_grams(size_);  // which may get its min_length bytes by this one
        Trunk& trunk = *trunk_;
        trunk.bytes.push_back(byte);
        trunk_size_ = ++size_;
        last_bytes_ = last_bytes_ >> 8 | uint64_t{byte} << 56;
        // What reads several bytes soon after they were written one by one has to wait until they are all in the cache;
        // if one store has written them, it need not.
        if (size_ >= 8) std::memcpy(trunk.bytes.data() + size_ - 8, &last_bytes_, 8);
        if (num_grams(size_) == position) return;
        const uint32_t size = gram_.size();
        insert_in_trunk(position, size <= 8 ? gram_.hash_of_word(last_bytes_ >> (64 - 8 * size), trunk.bits)
                                            : gram_.hash(&trunk.bytes[position], trunk.bits));
        if (position >> trunk_->bits > 0 && trunk_->bits < max_bits_) [[unlikely]]
            grow_heads();
    }
    void insert_in_trunk(size_t position, size_t hash) {
        Trunk& trunk = *trunk_;
        uint32_t& head = trunk.heads[hash];
        trunk.links.push_back(head);
        head = static_cast<uint32_t>(position + 1);
    }
    void grow_heads();
    void push_elsewhere(uint8_t byte);
    void make_trunk();

    Gram gram_;
    int max_bits_;
    std::shared_ptr<Trunk> trunk_ = std::make_shared<Trunk>();
    size_t trunk_size_ = 0;  // how many bytes of it belong to this one
    size_t size_ = 0;
    uint64_t last_bytes_ = 0;  // up to eight, the last one uppermost
    PersistentArray<uint8_t> added_bytes_;
    PersistentArray<uint32_t> added_links_;
    PersistentArray<uint32_t> added_heads_;
};

}  // namespace fastcompress::lz77
