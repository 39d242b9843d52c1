#include "fastcompress/lz77/history.h"

#include <array>

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
    // What others can read may be further on than this one, which has been truncated.
    uint32_t link = trunk_->heads[hash];
    while (link > num_grams(trunk_size_)) link = trunk_->links[link - 1];
    return link;
}

// Takes out of the trunk, which is this one's alone, what lies behind its end.
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
    const size_t num_positions = trunk.links.size();
    trunk.bits = std::min(max_bits_, trunk.bits + 2);
    trunk.heads.assign(size_t{1} << trunk.bits, 0);
    trunk.links.clear();
    for (size_t i = 0; i < num_positions; ++i) insert_in_trunk(i, gram_.hash(&trunk.bytes[i], trunk.bits));
}

void History::push_elsewhere(uint8_t byte) {
    if (size_ == trunk_size_ && trunk_.use_count() == 1) {
        std::atomic_thread_fence(std::memory_order_acquire);
        clean_trunk();
        return push_in_trunk(byte);
    }
    const size_t position = num_grams(size_);
    added_bytes_.set(static_cast<uint32_t>(size_ - trunk_size_), byte);
    ++size_;
    last_bytes_ = last_bytes_ >> 8 | uint64_t{byte} << 56;
    if (num_grams(size_) > position) {
        const size_t hash = hash_at(position);
        added_links_.set(static_cast<uint32_t>(position - num_grams(trunk_size_)), head(hash));
        added_heads_.set(static_cast<uint32_t>(hash), static_cast<uint32_t>(position + 1));
    }
    constexpr size_t kFew = 1024;
    if (size_ - trunk_size_ > std::max(kFew, trunk_size_)) make_trunk();
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

// Whether the first bytes are equal is counted and not guessed; of those, nearly none has the last bytes, too.
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

// When more has been added than was there, it is copied to where it is fast: O(1) amortized a byte.
void History::make_trunk() {
    History flat(gram_, max_bits_);
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
    last_bytes_ = 0;
    for (size_t i = size - std::min<size_t>(size, 8); i < size; ++i) {
        last_bytes_ = last_bytes_ >> 8 | uint64_t{(*this)[i]} << 56;
    }
}

}  // namespace fastcompress::lz77
