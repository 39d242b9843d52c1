#include "fastcompress/arithmetic/range_coder.h"

namespace fastcompress::arithmetic {

void RangeEncoder::carry() {
    // Held words began as the upper bits of a number below 1, so there is one that can take the carry.
    ++held_;
    if (num_pending_ == 0) return;
    settle(held_);
    --num_pending_;
    settle_pending(0);
    held_ = 0;
}

RangeEncoder::Close RangeEncoder::close() const {
    for (unsigned num_bits = 0;; ++num_bits) {
        const uint64_t below = num_bits == 0 ? ~uint64_t{0} : (uint64_t{1} << (64 - num_bits)) - 1;
        // The least multiple of 2^(64 - num_bits) from low on, if it is in the interval.
        const uint64_t up = (0 - low_) & below;
        if (up < range_) return {low_ + up, num_bits, low_ + up < low_};
    }
}

std::vector<uint8_t> RangeEncoder::finish() {
    const Close end = close();
    if (end.carries) carry();
    if (has_held_) settle(held_);
    settle_pending(0xffffffffu);
    for (unsigned i = 0; i < (end.num_bits + 7) / 8; ++i) {
        settled_.push_back(static_cast<uint8_t>(end.value >> (56 - 8 * i)));
    }
    std::vector<uint8_t> message(settled_.data(), settled_.data() + settled_.size());
    *this = RangeEncoder();
    return message;
}

std::vector<uint8_t> RangeEncoder::take_settled() {
    std::vector<uint8_t> bytes(settled_.data(), settled_.data() + settled_.size());
    settled_words_ += settled_.size() / 4;
    settled_.shrink(0);
    return bytes;
}

void RangeEncoder::restore(const Snapshot& snapshot) {
    low_ = snapshot.low;
    range_ = snapshot.range;
    num_pending_ = snapshot.num_pending;
    settled_.shrink(snapshot.num_settled_bytes);
    held_ = snapshot.held;
    has_held_ = snapshot.has_held;
}

uint32_t RangeDecoder::read_last_word() {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
        word <<= 8;
        if (next_ != end_) {
            word |= *next_++;
        } else {
            ++num_missing_;
        }
    }
    return word;
}

}  // namespace fastcompress::arithmetic
