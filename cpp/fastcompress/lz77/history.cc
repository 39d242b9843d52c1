#include "fastcompress/lz77/history.h"

#include <array>

namespace fastcompress::lz77 {

void History::copy(size_t begin, size_t size, uint8_t* out) const {
    for (size_t i = 0; i < size; ++i) out[i] = (*this)[begin + i];
}

bool History::equal_grams(size_t a, size_t b) const {
    if (std::max(a, b) + gram_.size() <= trunk_size_) return gram_.equal(&trunk_->bytes[a], &trunk_->bytes[b]);
    for (size_t i = 0; i < gram_.size(); ++i) {
        if ((*this)[a + i] != (*this)[b + i]) return false;
    }
    return true;
}

size_t History::hash_at(size_t position) const {
    if (position + gram_.size() <= trunk_size_) return gram_.hash(&trunk_->bytes[position], trunk_->bits);
    std::array<uint8_t, kMaxMinLength> bytes;
    copy(position, gram_.size(), bytes.data());
    return gram_.hash(bytes.data(), trunk_->bits);
}

uint32_t History::head(size_t hash) const {
    if (const uint32_t added = added_heads_.get(static_cast<uint32_t>(hash)); added != 0) return added;
    // What others can read may be further on than this one, which has been truncated.
    uint32_t link = trunk_->heads[hash];
    while (link > num_grams(trunk_size_)) link = trunk_->links[link - 1];
    return link;
}

// Whether the trunk is this one's alone, and ends where this one does: then nothing else is there any more.
bool History::own_trunk() {
    if (size_ != trunk_size_ || trunk_.use_count() != 1) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    Trunk& trunk = *trunk_;
    for (size_t position = trunk.links.size(); position > num_grams(size_);) {
        --position;
        trunk.heads[gram_.hash(&trunk.bytes[position], trunk.bits)] = trunk.links[position];
    }
    trunk.links.resize(num_grams(size_));
    trunk.bytes.resize(size_);
    return true;
}

void History::insert_in_trunk(size_t position) {
    Trunk& trunk = *trunk_;
    uint32_t& head = trunk.heads[gram_.hash(&trunk.bytes[position], trunk.bits)];
    trunk.links.push_back(head);
    head = static_cast<uint32_t>(position + 1);
}

void History::push(uint8_t byte) {
    constexpr int kMaxBits = 22;
    const size_t position = num_grams(size_);  // which may get its min_length bytes by this one
    if (own_trunk()) {
        trunk_->bytes.push_back(byte);
        trunk_size_ = ++size_;
        if (num_grams(size_) == position) return;
        insert_in_trunk(position);
        if (position >> trunk_->bits > 0 && trunk_->bits < kMaxBits) {
            trunk_->bits = std::min(kMaxBits, trunk_->bits + 2);
            trunk_->heads.assign(size_t{1} << trunk_->bits, 0);
            trunk_->links.clear();
            for (size_t i = 0; i <= position; ++i) insert_in_trunk(i);
        }
        return;
    }
    added_bytes_.set(static_cast<uint32_t>(size_ - trunk_size_), byte);
    ++size_;
    if (num_grams(size_) > position) {
        const size_t hash = hash_at(position);
        added_links_.set(static_cast<uint32_t>(position - num_grams(trunk_size_)), head(hash));
        added_heads_.set(static_cast<uint32_t>(hash), static_cast<uint32_t>(position + 1));
    }
    constexpr size_t kFew = 1024;
    if (size_ - trunk_size_ > std::max(kFew, trunk_size_)) make_trunk();
}

// When more has been added than was there, it is copied to where it is fast: O(1) amortized a byte.
void History::make_trunk() {
    History flat(gram_.size());
    flat.trunk_->bytes.reserve(2 * size_);
    for (size_t i = 0; i < size_; ++i) flat.push((*this)[i]);
    *this = std::move(flat);
}

void History::truncate(size_t size) {
    const size_t in_trunk = num_grams(trunk_size_);
    for (size_t position = num_grams(size_); position > std::max(num_grams(size), in_trunk);) {
        --position;
        const uint32_t before = link(position);
        added_heads_.set(static_cast<uint32_t>(hash_at(position)), before > in_trunk ? before : 0);
    }
    if (size <= trunk_size_) {
        added_bytes_.clear();
        added_links_.clear();
        added_heads_.clear();
        trunk_size_ = size;
    }
    size_ = size;
}

}  // namespace fastcompress::lz77
