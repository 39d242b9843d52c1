// The text that a history and one more token make, for legality.cc and legal_distances.cc.
#pragma once

#include "fastcompress/lz77/incremental_parser.h"

namespace fastcompress::lz77 {

// The bytes of a history followed by one byte, or by the bytes that a match of a given distance copies, without end.
class IncrementalParser::Continuation {
  public:
    Continuation(const History& history, uint8_t byte) : history_(history), byte_(byte) {}
    Continuation(const History& history, uint32_t distance) : history_(history), distance_(distance) {}

    uint8_t operator[](size_t position) const {
        const size_t size = history_.size();
        if (position < size) return history_[position];
        if (distance_ == 0) return byte_;
        const size_t offset = position - size;
        return history_[size - distance_ + (offset < distance_ ? offset : offset % distance_)];
    }
    size_t size() const { return distance_ == 0 ? history_.size() + 1 : ~size_t{0}; }
    // Returns the number of bytes in which the text at `source` and at `position` agree, at most `most`.
    size_t agreement(size_t source, size_t position, size_t most) const {
        size_t length = 0;
        while (length < most && (*this)[source + length] == (*this)[position + length]) ++length;
        return length;
    }
    // Calls visit(source) for the occurrences at a position within the window, nearest first, until it returns false.
    // Requires a position of at most history.size().
    template <class Visit>
    void for_each_occurrence(size_t position, const Params& params, const Visit& visit) const {
        const uint32_t min_length = params.min_length;
        const size_t lowest = position > params.window ? position - params.window : 0;
        // Occurrences that reach past the end of the history are not in any chain.
        const size_t size = history_.size();
        const size_t in_chains = size < min_length ? 0 : size - min_length + 1;
        for (size_t source = position; source-- > std::max(in_chains, lowest);) {
            if (agreement(source, position, min_length) == min_length && !visit(source)) return;
        }
        std::array<uint8_t, kMaxMinLength> gram;
        for (uint32_t i = 0; i < min_length; ++i) gram[i] = (*this)[position + i];
        uint32_t source = history_.last_with(gram.data());
        while (source != History::kNone && source >= position) source = history_.before(source);
        for (; source != History::kNone && source >= lowest; source = history_.before(source)) {
            if (agreement(source, position, min_length) == min_length && !visit(source)) return;
        }
    }
    bool has_occurrence(size_t position, const Params& params) const {
        bool found = false;
        for_each_occurrence(position, params, [&](size_t) {
            found = true;
            return false;
        });
        return found;
    }

  private:
    const History& history_;
    uint8_t byte_ = 0;
    uint32_t distance_ = 0;  // 0 if one byte follows the history
};

}  // namespace fastcompress::lz77
