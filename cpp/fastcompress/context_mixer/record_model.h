// The record model: finds the length of records in binary files that are tables. Only adaptive models have one.
//
// The distance to where the last three bytes (not all equal) were seen before is a vote for a record length. One
// candidate is kept, with a score: a vote for it adds two, any other vote takes one, and a candidate without score is
// replaced (a leaky form of the majority vote of R. Boyer and J S. Moore). In text, no distance gets a third of the
// votes; in a table of numbers or in a bitmap, one does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace fastcompress::context_mixer {

inline constexpr uint32_t kMaxRecord = 1023;
inline constexpr int kMaxRecordScore = 255;
inline constexpr int kSureRecordScore = 64;

class RecordModel {
  public:
    // Takes the last bytes, of which `num_known` exist, and the position of the next byte.
    void append(uint64_t last, uint32_t num_known, uint32_t position) {
        const uint32_t three = last & 0xffffff;
        if (num_known < 3 || three == (three & 0xff) * 0x010101) return;
        uint32_t& before = positions_[three * 0x9e3779b1u >> 20];
        const uint32_t distance = position - before;
        before = position;
        if (distance == candidate_) {
            score_ = std::min(score_ + 2, kMaxRecordScore);
        } else if (--score_ < 0) {
            candidate_ = distance >= 2 && distance <= kMaxRecord ? distance : 0;
            score_ = 0;
        }
    }
    // The length of a record in bytes; 0: no records.
    uint32_t length() const { return score_ >= kSureRecordScore ? candidate_ : 0; }

  private:
    std::array<uint32_t, 4096> positions_ = {};  // by hash: the position after the three bytes
    uint32_t candidate_ = 0;
    int score_ = 0;
};

}  // namespace fastcompress::context_mixer
