// The match model: finds where the last six bytes were seen before, and expects the byte that followed them there. Only
// adaptive models have one; a frozen model knows nothing beyond its window.
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
    // Stores 2^log2_entries positions and 2^(log2_entries + 4) bytes.
    explicit MatchModel(unsigned log2_entries)
        : shift_(64 - log2_entries),
          mask_((uint32_t{1} << (log2_entries + 4)) - 1),
          bytes_(size_t{mask_} + 1),
          table_(size_t{1} << log2_entries) {}

    // Appends a byte. `last` are the last bytes, this one lowest, of which `num_known` exist.
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
    // Looks for a match if none is under way. Separate from append(), so that memory can be prefetched in between.
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

    // The length of the match; 0: no match.
    uint32_t length() const { return length_; }
    uint8_t expected() const { return bytes_[pointer_ & mask_]; }

    uint32_t position() const { return position_; }
    // The byte `distance` bytes before the next one: 1 is the last byte.
    uint8_t before(uint32_t distance) const { return bytes_[(position_ - distance) & mask_]; }

  private:
    unsigned shift_;
    uint32_t mask_;
    HugeArray<uint8_t> bytes_;   // the last bytes, a ring
    HugeArray<uint32_t> table_;  // by hash of six bytes, the position after them; 0: none
    uint32_t position_ = 0;      // of the next byte, modulo 2^32
    uint32_t pointer_ = 0;       // position of the expected byte
    uint32_t length_ = 0;
    uint32_t entry_ = 0;
    bool is_due_ = false;
};

}  // namespace fastcompress::context_mixer
