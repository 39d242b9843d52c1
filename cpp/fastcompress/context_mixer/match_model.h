// The longest repetition, roughly: where the last six bytes were seen last, what came next there. Adaptive models only:
// a frozen one knows no history beyond its window.
#pragma once

#include <cstdint>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::context_mixer {

inline constexpr uint32_t kMinMatch = 6;
inline constexpr uint32_t kMaxCheckedMatch = 32;
inline constexpr uint32_t kMaxMatch = 65535;

class MatchModel {
  public:
    // 2^log2_entries positions are remembered, and 2^(log2_entries + 4) bytes.
    explicit MatchModel(unsigned log2_entries)
        : shift_(64 - log2_entries),
          mask_((uint32_t{1} << (log2_entries + 4)) - 1),
          bytes_(size_t{mask_} + 1),
          table_(size_t{1} << log2_entries) {}

    // The byte after the `num_known` last ones, which are `last` from the lowest on up to six of them.
    void append(uint8_t byte, uint64_t last, uint32_t num_known) {
        bytes_[position_ & mask_] = byte;
        const bool goes_on = length_ > 0 && bytes_[pointer_ & mask_] == byte;
        ++position_;
        if (goes_on) {
            ++pointer_;
            length_ += length_ < kMaxMatch ? 1 : 0;
        } else {
            length_ = 0;
        }
        is_due_ = num_known >= kMinMatch;
        if (!is_due_) return;
        entry_ = static_cast<uint32_t>(((last & 0xffffffffffffu) * 0x9e3779b97f4a7c15u) >> shift_);
        prefetch(&table_[entry_]);
    }
    // Looks for a match if there is none. In two steps, so that memory may be fetched between them.
    void find() {
        if (!is_due_) return;
        if (length_ == 0) {
            pointer_ = table_[entry_];
            if (pointer_ > 0) {
                while (length_ < kMaxCheckedMatch &&
                       bytes_[(pointer_ - 1 - length_) & mask_] == bytes_[(position_ - 1 - length_) & mask_]) {
                    ++length_;
                }
                if (length_ < kMinMatch) length_ = 0;
            }
        }
        table_[entry_] = position_;
    }
    // Ends the match, as at the beginning of a document. An entry that is due stays due.
    void forget() { length_ = 0; }

    // Of the match; 0: there is none.
    uint32_t length() const { return length_; }
    uint8_t expected() const { return bytes_[pointer_ & mask_]; }

    uint32_t position() const { return position_; }
    // `distance` bytes before the next: 1 is the last.
    uint8_t before(uint32_t distance) const { return bytes_[(position_ - distance) & mask_]; }

  private:
    unsigned shift_;
    uint32_t mask_;
    HugeArray<uint8_t> bytes_;   // the last ones, a ring
    HugeArray<uint32_t> table_;  // hash of six bytes: the position after them; 0: none
    uint32_t position_ = 0;      // of the next byte, modulo 2^32
    uint32_t pointer_ = 0;       // of the byte expected next
    uint32_t length_ = 0;
    uint32_t entry_ = 0;
    bool is_due_ = false;
};

}  // namespace fastcompress::context_mixer
