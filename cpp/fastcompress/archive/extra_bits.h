// Extra bits: bits that no model predicts, the first one in the lowest bit of the first byte.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::archive {

class BitWriter {
  public:
    // Appends the lower `count` bits of `value`, 0 to 30; the bits above must be zero.
    void write(uint32_t value, unsigned count) {
        bits_ |= uint64_t{value} << num_bits_;
        num_bits_ += count;
        for (; num_bits_ >= 8; num_bits_ -= 8) {
            out_.push_back(static_cast<uint8_t>(bits_));
            bits_ >>= 8;
        }
    }
    // Returns everything, filled up with zeros to whole bytes.
    std::vector<uint8_t> take() {
        if (num_bits_ > 0) out_.push_back(static_cast<uint8_t>(bits_));
        return std::move(out_);
    }

  private:
    std::vector<uint8_t> out_;
    uint64_t bits_ = 0;
    unsigned num_bits_ = 0;
};

class BitReader {
  public:
    explicit BitReader(Bytes bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    // Reads the next `count` bits, 0 to 30; zeros after the end.
    uint32_t read(unsigned count) {
        if (num_bits_ < count) fill();
        const auto value = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
        bits_ >>= count;
        num_bits_ -= count;
        return value;
    }
    // Returns false if more bits were read than exist.
    bool ok() const { return num_missing_ * 8 <= num_bits_; }
    // Returns whether everything has been read except zeros that fill up the last byte.
    bool is_finished() const { return ok() && next_ == end_ && num_bits_ - 8 * num_missing_ < 8 && bits_ == 0; }

  private:
    void fill() {
        while (num_bits_ <= 32) {
            if (next_ != end_) {
                bits_ |= uint64_t{*next_++} << num_bits_;
            } else {
                ++num_missing_;
            }
            num_bits_ += 8;
        }
    }

    const uint8_t* next_;
    const uint8_t* end_;
    uint64_t bits_ = 0;
    unsigned num_bits_ = 0;
    uint64_t num_missing_ = 0;
};

}  // namespace fastcompress::archive
