#include "fastcompress/lz77/occurrence_lists.h"

namespace fastcompress::lz77 {

void OccurrenceLists::sort(size_t begin, size_t end) {
    begin_ = begin;
    const size_t last = text_.size() < gram_.size() ? 0 : text_.size() - gram_.size() + 1;
    const size_t count = std::min(end, last) - std::min({begin, end, last});
    bits_ = std::clamp(static_cast<int>(std::bit_width(count)), 8, 20);
    bucket_ends_.assign(size_t{1} << bits_, 0);
    order_.resize(count);
    places_.resize(count);
    const uint8_t* const data = text_.data() + begin;
    for (size_t i = 0; i < count; ++i) {
        const size_t hash = gram_.hash(data + i, bits_);
        places_[i] = static_cast<uint32_t>(hash);
        ++bucket_ends_[hash];
    }
    uint32_t sum = 0;
    for (uint32_t& bucket : bucket_ends_) {
        const uint32_t size = bucket;
        bucket = sum;  // where it begins, until it is filled
        sum += size;
    }
    for (size_t i = 0; i < count; ++i) {
        const uint32_t place = bucket_ends_[places_[i]]++;
        order_[place] = static_cast<uint32_t>(i);
        places_[i] = place;
    }
}

Match OccurrenceLists::find_slowly(size_t position) const {
    const uint8_t* const data = text_.data() + begin_;
    const auto i = static_cast<uint32_t>(position - begin_);
    const uint32_t lowest = i > params_.window ? i - params_.window : 0;
    const uint32_t most = most_at(position);
    const uint32_t* const first = order_.data() + bucket_begin(position);
    uint32_t num_left = params_.depth;
    Match best;
    for (const uint32_t* p = order_.data() + places_[i]; p != first && num_left > 0 && best.length < most;) {
        const uint32_t j = *--p;
        if (j < lowest) break;
        if (!gram_.equal(data + j, data + i)) continue;
        --num_left;
        const auto length = static_cast<uint32_t>(common_prefix(data + j, data + i, most));
        if (length > best.length) best = {length, i - j};
    }
    return best;
}

}  // namespace fastcompress::lz77
