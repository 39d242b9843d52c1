// Exact counts of pairs of symbols, in an open-addressing table.
#pragma once

#include <cstdint>
#include <utility>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/hash.h"
#include "fastcompress/common/huge_array.h"

namespace fastcompress::bpe {

using Pair = uint64_t;  // left << 32 | right, so that pairs compare as (left, right)

inline Pair make_pair(TokenId left, TokenId right) {
    return uint64_t{left} << 32 | right;
}
inline TokenId left_of(Pair pair) {
    return static_cast<TokenId>(pair >> 32);
}
inline TokenId right_of(Pair pair) {
    return static_cast<TokenId>(pair);
}

class PairCounts {
  public:
    struct Slot {
        uint64_t key;  // pair + 1; 0: empty
        int64_t count;
        uint32_t list;  // for the owner of the table; 0 at first
        Pair pair() const { return key - 1; }
    };

    // Returns null if the pair is not in the table. A pointer is valid until the next insert().
    Slot* find(Pair pair) {
        Slot& slot = slots_[slot_of(pair)];
        return slot.key == 0 ? nullptr : &slot;
    }
    // Returns the slot of a pair, which is added with count 0 if it is new.
    Slot& insert(Pair pair) {
        size_t i = slot_of(pair);
        if (slots_[i].key == 0) {
            if (num_used_ >= slots_.size() / 2) {
                grow();
                i = slot_of(pair);
            }
            ++num_used_;
            slots_[i].key = pair + 1;
        }
        return slots_[i];
    }
    size_t size() const { return num_used_; }
    void clear() { *this = PairCounts(); }

    template <class Visit>
    void for_each(const Visit& visit) {
        for (size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i].key != 0) visit(slots_[i]);
        }
    }

  private:
    size_t slot_of(Pair pair) const {
        const size_t mask = slots_.size() - 1;
        size_t i = mix64(pair) & mask;
        while (slots_[i].key != 0 && slots_[i].key != pair + 1) i = (i + 1) & mask;
        return i;
    }
    void grow() {
        HugeArray<Slot> old(slots_.size() * 2);
        std::swap(old, slots_);
        for (size_t i = 0; i < old.size(); ++i) {
            if (old[i].key != 0) slots_[slot_of(old[i].pair())] = old[i];
        }
    }

    HugeArray<Slot> slots_{size_t{1} << 12};
    size_t num_used_ = 0;
};

}  // namespace fastcompress::bpe
