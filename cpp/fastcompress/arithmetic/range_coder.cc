#include "fastcompress/arithmetic/range_coder.h"

namespace fastcompress::arithmetic {

RangeEncoder::Close RangeEncoder::close_interval(uint64_t low, uint64_t range) {
    for (unsigned num_bits = 0;; ++num_bits) {
        const uint64_t below = num_bits == 0 ? ~uint64_t{0} : (uint64_t{1} << (64 - num_bits)) - 1;
        // The smallest multiple of 2^(64 - num_bits) from low on, if it is in the interval.
        const uint64_t up = (0 - low) & below;
        if (up < range) return {low + up, num_bits, low + up < low};
    }
}

std::vector<uint8_t> RangeEncoder::finish() {
    const Close end = close();
    const size_t num_last = (end.num_bits + 7) / 8;
    std::vector<uint8_t> code(bytes_.size() + num_last);
    std::copy(bytes_.data(), bytes_.data() + bytes_.size(), code.begin());
    if (end.carries) carry(code.data() + bytes_.size());
    for (size_t i = 0; i < num_last; ++i) {
        code[bytes_.size() + i] = static_cast<uint8_t>(end.value >> (56 - 8 * i));
    }
    *this = RangeEncoder();
    return code;
}

size_t RangeEncoder::num_unsettled() const {
    size_t count = 0;
    while (count < bytes_.size()) {
        ++count;
        if (bytes_[bytes_.size() - count] != 0xff) break;
    }
    return count;
}

std::vector<uint8_t> RangeEncoder::take_settled() {
    const size_t num_settled = bytes_.size() - num_unsettled();
    std::vector<uint8_t> settled(bytes_.data(), bytes_.data() + num_settled);
    std::copy(bytes_.data() + num_settled, bytes_.data() + bytes_.size(), bytes_.data());
    bytes_.shrink(bytes_.size() - num_settled);
    num_taken_ += num_settled;
    return settled;
}

RangeEncoder::Snapshot RangeEncoder::snapshot() const {
    const size_t count = num_unsettled();
    const uint8_t first = count > 0 ? bytes_[bytes_.size() - count] : uint8_t{0};
    return {low_, range_, num_bytes(), count, first};
}

bool RangeEncoder::restore(const Snapshot& snapshot) {
    const uint64_t num_settled = snapshot.num_bytes - snapshot.num_unsettled;
    if (num_settled < num_taken_ || snapshot.num_bytes > num_bytes()) return false;
    bytes_.shrink(static_cast<size_t>(num_settled - num_taken_));
    if (snapshot.num_unsettled > 0) bytes_.push_back(snapshot.first_unsettled);
    for (size_t i = 1; i < snapshot.num_unsettled; ++i) bytes_.push_back(0xff);
    low_ = snapshot.low;
    range_ = snapshot.range;
    return true;
}

uint64_t RangeDecoder::code_bytes() const {
    // The last 64 bits read are low + code_, so low is known, and the encoder's end with it.
    const uint64_t num_here = static_cast<uint64_t>(next_ - begin_);
    uint64_t last = 0;
    for (uint64_t i = num_here + num_missing_ - 8; i < num_here + num_missing_; ++i) {
        last = last << 8 | (i < num_here ? begin_[i] : 0);
    }
    const unsigned num_bits = RangeEncoder::close_interval(last - code_, range_).num_bits;
    return num_read_before_ + num_here + num_missing_ - 8 + (num_bits + 7) / 8;
}

Status RangeDecoder::check_end(uint64_t num_bytes) const {
    const uint64_t end = code_bytes();
    if (num_bytes <= end) return {};
    return malformed(std::to_string(num_bytes - end) + " bytes follow the code, which ends after " +
                     std::to_string(end) + " bytes; cut them off if they are not part of it");
}

bool RangeDecoder::is_settled_by(uint64_t num_bits, Bytes code) const {
    const uint64_t num_read = static_cast<uint64_t>(next_ - begin_) + num_missing_;
    if (num_bits >= 8 * num_read) return true;
    const uint64_t num_unknown = 8 * num_read - num_bits;
    if (num_unknown >= 64) return false;
    uint64_t last = 0;
    for (uint64_t i = num_read - 8; i < num_read; ++i) last = last << 8 | (i < code.size() ? code[i] : 0);
    const uint64_t span = uint64_t{1} << num_unknown;
    const uint64_t unknown = last & (span - 1);
    // The number is between code_ - unknown, where all unknown bits are zeros, and span - 1 more.
    return code_ >= unknown && span <= range_ && code_ - unknown <= range_ - span;
}

bool RangeDecoder::is_finished_by(Bytes code) const {
    if (!ok()) return false;
    // The encoder had written all but the last eight bytes that were read, which are its low and what was added to it.
    const uint64_t num_written = num_read_before_ + static_cast<uint64_t>(next_ - begin_) + num_missing_ - 8;
    uint64_t last = 0;
    for (uint64_t i = num_written; i < num_written + 8; ++i) last = last << 8 | (i < code.size() ? code[i] : 0);
    const RangeEncoder::Close end = RangeEncoder::close_interval(last - code_, range_);
    return code.size() == num_written + (end.num_bits + 7) / 8 && last == end.value;
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
