// The bytes of a text so far, and for each position the nearest earlier one with the same hash of its min_length bytes.
//
// Hash chains as in deflate, except that a link is never overwritten, so bytes can be removed, last first, by undoing
// what they did:
//
//   position    0 1 2 3 4 5 6     min_length 2: link[3] = 0, heads[hash of "ab"] = 3.
//   text        a b c a b         Appending "a" and "b" gives position 5 ("ba") and then, when "b" has come, position 6
//                                 nothing yet. Removing them sets the heads back to what the links say.
//
// A copy shares all data with the original, and both can grow: the common part, the trunk, becomes read-only, and the
// bytes that each adds are stored in arrays that can be copied in turn (persistent_array.h). When a copy has added more
// bytes than the trunk holds, it makes a trunk of its own. A history that is never copied pays nothing for this.
//
// Invariants: a trunk may hold more bytes than belong to a history that shares it or was truncated; those are removed
// when a history that alone owns it appends (clean_trunk). If an allocation fails, a history is as it was before the
// call. A moved-from history is empty.
//
// Cost: 9 bytes and about 30 instructions per byte. One-shot parses have no need to undo and use window_chains.h.
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

    // Positions farther apart than `window` are never asked for, so the table of hashes need not be larger than it.
    History(uint32_t min_length, uint32_t window)
        : gram_(min_length), max_bits_(std::clamp(static_cast<int>(std::bit_width(window)) - 1, 8, 22)) {}
    History(const History&) = default;
    History& operator=(const History&) = default;
    History(History&& other) noexcept : History(other.gram_, other.max_bits_) { swap(other); }
    History& operator=(History&& other) noexcept {
        History(std::move(other)).swap(*this);
        return *this;
    }
    void swap(History& other) noexcept;

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
    // Requires size <= this->size(). O(number of bytes removed). Needs no memory to remove bytes that were appended
    // since the last copy.
    void truncate(size_t size);

    uint8_t operator[](size_t position) const {
        return position < trunk_size_ ? trunk_->bytes[position]
                                      : added_bytes_.get(static_cast<uint32_t>(position - trunk_size_));
    }
    // The bytes, if they are one array; else null.
    const uint8_t* flat() const { return size_ == trunk_size_ && trunk_ ? trunk_->bytes.data() : nullptr; }
    void copy(size_t begin, size_t size, uint8_t* out) const;
    bool equal_grams(size_t a, size_t b) const;
    // Returns the nearest position in [lowest, from) that agrees with `position` for `length` bytes, which is at least
    // min_length; kNone if there is none. Looks at no more than *num_left of those that agree for min_length bytes, and
    // subtracts their number from it.
    uint32_t find_before(size_t from, size_t position, size_t length, size_t lowest, uint32_t* num_left) const;
    // The nearest position before this one whose first min_length bytes have the same hash, or kNone. Requires that
    // min_length bytes begin at `position`.
    uint32_t before(size_t position) const { return link(position) - 1; }
    // The last position whose first min_length bytes have the same hash as the given ones, or kNone.
    uint32_t last_with(const uint8_t* gram) const { return trunk_ ? head(gram_.hash(gram, trunk_->bits)) - 1 : kNone; }
    const Gram& gram() const { return gram_; }

  private:
    History(const Gram& gram, int max_bits) : gram_(gram), max_bits_(max_bits) {}
    // Links and heads are positions plus one; 0 stands for none.
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
    // The sizes are set last: if an allocation fails, clean_trunk() will remove what was added.
    void push_in_trunk(uint8_t byte) {
        Trunk& trunk = *trunk_;
        const size_t position = num_grams(size_);  // min_length bytes may begin there once this byte is added
        if (position >> trunk.bits > 0 && trunk.bits < max_bits_) [[unlikely]]
            grow_heads();
        trunk.bytes.push_back(byte);
        const size_t size = size_ + 1;
        const uint64_t last_bytes = last_bytes_ >> 8 | uint64_t{byte} << 56;
        // A load of several bytes that were just stored one by one waits until they have reached the cache; if a single
        // store has written them, it does not.
        if (size >= 8) std::memcpy(trunk.bytes.data() + size - 8, &last_bytes, 8);
        if (num_grams(size) > position) {
            const uint32_t gram_size = gram_.size();
            insert_in_trunk(position, gram_size <= 8
                                          ? gram_.hash_of_word(last_bytes >> (64 - 8 * gram_size), trunk.bits)
                                          : gram_.hash(&trunk.bytes[position], trunk.bits));
        }
        trunk_size_ = size_ = size;
        last_bytes_ = last_bytes;
    }
    void insert_in_trunk(size_t position, size_t hash) {
        Trunk& trunk = *trunk_;
        uint32_t& head = trunk.heads[hash];
        trunk.links.push_back(head);
        head = static_cast<uint32_t>(position + 1);
    }
    void grow_heads();
    void push_elsewhere(uint8_t byte);
    void push_in_added(uint8_t byte);
    void make_trunk();
    void remove_added_heads(size_t num_left);

    Gram gram_;
    int max_bits_;
    std::shared_ptr<Trunk> trunk_;  // null before the first byte
    size_t trunk_size_ = 0;         // the number of its bytes that belong to this history
    size_t size_ = 0;
    uint64_t last_bytes_ = 0;  // up to eight, the last one in the uppermost byte
    PersistentArray<uint8_t> added_bytes_;
    PersistentArray<uint32_t> added_links_;
    PersistentArray<uint32_t> added_heads_;
};

}  // namespace fastcompress::lz77
