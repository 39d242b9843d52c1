#include "fastcompress/lz77/history.h"

#include <array>
#include <cassert>
#include <utility>

#include "fastcompress/common/rollback.h"

namespace fastcompress::lz77 {

void History::copy(size_t begin, size_t size, uint8_t* out) const {
    const size_t in_trunk = begin < trunk_size_ ? std::min(size, trunk_size_ - begin) : 0;
    if (in_trunk > 0) std::memcpy(out, &trunk_->bytes[begin], in_trunk);
    for (size_t i = in_trunk; i < size; ++i) out[i] = (*this)[begin + i];
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
    // A trunk may go further than this history, which has been truncated.
    uint32_t link = trunk_->heads[hash];
    while (link > num_grams(trunk_size_)) link = trunk_->links[link - 1];
    return link;
}

// Removes from the trunk, which no other history shares, what lies after the end of this one.
void History::clean_trunk() {
    Trunk& trunk = *trunk_;
    for (size_t position = trunk.links.size(); position > num_grams(size_);) {
        --position;
        trunk.heads[gram_.hash(&trunk.bytes[position], trunk.bits)] = trunk.links[position];
    }
    trunk.links.resize(num_grams(size_));
    trunk.bytes.resize(size_);
}

void History::grow_heads() {
    Trunk& trunk = *trunk_;
    const int bits = std::min(max_bits_, trunk.bits + 2);
    std::vector<uint32_t> heads(size_t{1} << bits);
    // From here on nothing fails: there is room for as many links as before.
    const size_t num_positions = trunk.links.size();
    trunk.heads = std::move(heads);
    trunk.bits = bits;
    trunk.links.clear();
    for (size_t i = 0; i < num_positions; ++i) insert_in_trunk(i, gram_.hash(&trunk.bytes[i], trunk.bits));
}

void History::push_elsewhere(uint8_t byte) {
    constexpr size_t kFew = 1024;
    if (size_ - trunk_size_ > std::max(kFew, trunk_size_)) make_trunk();
    if (!trunk_) trunk_ = std::make_shared<Trunk>();
    if (size_ == trunk_size_ && trunk_.use_count() == 1) {
        std::atomic_thread_fence(std::memory_order_acquire);
        clean_trunk();
        push_in_trunk(byte);
    } else {
        push_in_added(byte);
    }
}

// The head and the size are set last: what an allocation that fails leaves beyond the size is never read.
void History::push_in_added(uint8_t byte) {
    const size_t position = num_grams(size_);
    added_bytes_.set(static_cast<uint32_t>(size_ - trunk_size_), byte);
    if (num_grams(size_ + 1) > position) {
        const size_t hash = hash_at(position);
        added_links_.set(static_cast<uint32_t>(position - num_grams(trunk_size_)), head(hash));
        added_heads_.set(static_cast<uint32_t>(hash), static_cast<uint32_t>(position + 1));
    }
    ++size_;
    last_bytes_ = last_bytes_ >> 8 | uint64_t{byte} << 56;
}

bool History::agrees(size_t earlier, size_t position, size_t length) const {
    for (size_t i = length; i-- > 0;) {
        if ((*this)[earlier + i] != (*this)[position + i]) return false;
    }
    return true;
}

uint32_t History::find_before(size_t from, size_t position, size_t length, size_t lowest, uint32_t* num_left) const {
    if (flat() != nullptr && gram_.size() >= 4) return find_in_trunk(from, position, length, lowest, num_left);
    for (uint32_t earlier = before(from); earlier != kNone && earlier >= lowest && *num_left > 0;
         earlier = before(earlier)) {
        if (!equal_grams(earlier, position)) continue;
        --*num_left;
        if (agrees(earlier, position, length)) return earlier;
    }
    return kNone;
}

// Equal first bytes are counted without a branch; hardly any of those candidates agree in the last bytes, too.
uint32_t History::find_in_trunk(size_t from, size_t position, size_t length, size_t lowest, uint32_t* num_left) const {
    const uint8_t* const bytes = trunk_->bytes.data();
    const uint32_t* const links = trunk_->links.data();
    const auto half_word = [&](size_t i) {
        uint32_t word;
        std::memcpy(&word, bytes + i, 4);
        return word;
    };
    const size_t to_gram_end = gram_.size() - 4;
    const size_t to_end = length - 4;
    const uint32_t first = half_word(position);
    const uint32_t gram_end = half_word(position + to_gram_end);
    const uint32_t end = half_word(position + to_end);
    uint32_t left = *num_left;
    uint32_t found = kNone;
    for (uint32_t link = links[from]; left > 0 && link > lowest; link = links[link - 1]) {
        const uint32_t earlier = link - 1;
        const uint32_t differences = (half_word(earlier) ^ first) | (half_word(earlier + to_gram_end) ^ gram_end);
        if (gram_.size() > 8 && differences == 0 && !gram_.equal(bytes + earlier, bytes + position)) continue;
        left -= differences == 0;
        if ((differences | (half_word(earlier + to_end) ^ end)) != 0) [[likely]]
            continue;
        if (common_prefix(bytes + earlier, bytes + position, length) == length) {
            found = earlier;
            break;
        }
    }
    *num_left = left;
    return found;
}

// Copies everything to where access is fast, once more has been added than the trunk holds: O(1) amortized per byte.
void History::make_trunk() {
    History flat(gram_, max_bits_);
    flat.trunk_ = std::make_shared<Trunk>();
    flat.trunk_->bytes.reserve(2 * size_);
    for (size_t i = 0; i < size_; ++i) flat.push((*this)[i]);
    *this = std::move(flat);
}

void History::truncate(size_t size) {
    assert(size <= size_);
    if (size <= trunk_size_) {
        added_bytes_.clear();
        added_links_.clear();
        added_heads_.clear();
        trunk_size_ = size;
    } else {
        remove_added_heads(num_grams(size));
    }
    size_ = size;
    last_bytes_ = 0;
    for (size_t i = size - std::min<size_t>(size, 8); i < size; ++i) {
        last_bytes_ = last_bytes_ >> 8 | uint64_t{(*this)[i]} << 56;
    }
}

// Sets the heads back to what they were when there were `num_left` positions with min_length bytes.
void History::remove_added_heads(size_t num_left) {
    const size_t in_trunk = num_grams(trunk_size_);
    size_t position = num_grams(size_);
    // If an allocation fails: the values set before can be set again without one.
    Rollback rollback([&] {
        for (; position < num_grams(size_); ++position) {
            added_heads_.set(static_cast<uint32_t>(hash_at(position)), static_cast<uint32_t>(position + 1));
        }
    });
    for (; position > std::max(num_left, in_trunk); --position) {
        const uint32_t before = link(position - 1);
        added_heads_.set(static_cast<uint32_t>(hash_at(position - 1)), before > in_trunk ? before : 0);
    }
    rollback.release();
}

void History::swap(History& other) noexcept {
    std::swap(gram_, other.gram_);
    std::swap(max_bits_, other.max_bits_);
    trunk_.swap(other.trunk_);
    std::swap(trunk_size_, other.trunk_size_);
    std::swap(size_, other.size_);
    std::swap(last_bytes_, other.last_bytes_);
    std::swap(added_bytes_, other.added_bytes_);
    std::swap(added_links_, other.added_links_);
    std::swap(added_heads_, other.added_heads_);
}

}  // namespace fastcompress::lz77
