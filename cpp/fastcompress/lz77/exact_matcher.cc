#include "fastcompress/lz77/exact_matcher.h"

#include <algorithm>
#include <bit>

#include "fastcompress/lz77/suffix_array.h"
#include "fastcompress/lz77/text_compare.h"

namespace fastcompress::lz77 {

RankSet::RankSet(size_t limit) {
    size_t size = limit;
    do {
        size = (size + 63) / 64;
        levels_.emplace_back(size);
    } while (size > 1);
}

void RankSet::insert(size_t rank) {
    for (std::vector<uint64_t>& level : levels_) {
        level[rank / 64] |= uint64_t{1} << rank % 64;
        rank /= 64;
    }
}

void RankSet::erase(size_t rank) {
    for (std::vector<uint64_t>& level : levels_) {
        level[rank / 64] &= ~(uint64_t{1} << rank % 64);
        if (level[rank / 64] != 0) return;
        rank /= 64;
    }
}

size_t RankSet::before(size_t rank) const {
    for (size_t k = 0; k < levels_.size(); ++k, rank /= 64) {
        uint64_t bits = levels_[k][rank / 64] & ((uint64_t{1} << rank % 64) - 1);
        if (bits == 0) continue;
        size_t word = rank / 64;
        for (;;) {
            word = 64 * word + 63 - static_cast<size_t>(std::countl_zero(bits));
            if (k-- == 0) return word;
            bits = levels_[k][word];
        }
    }
    return kNone;
}

size_t RankSet::after(size_t rank) const {
    for (size_t k = 0; k < levels_.size(); ++k, rank /= 64) {
        uint64_t bits = levels_[k][rank / 64] & (~uint64_t{1} << rank % 64);
        if (bits == 0) continue;
        size_t word = rank / 64;
        for (;;) {
            word = 64 * word + static_cast<size_t>(std::countr_zero(bits));
            if (k-- == 0) return word;
            bits = levels_[k][word];
        }
    }
    return kNone;
}

MinTree::MinTree(const std::vector<int32_t>& values)
    : size_(values.size()), num_leaves_(std::bit_ceil(std::max<size_t>(1, size_))), nodes_(2 * num_leaves_, -1) {
    std::ranges::copy(values, nodes_.begin() + static_cast<std::ptrdiff_t>(num_leaves_));
    for (size_t k = num_leaves_ - 1; k > 0; --k) nodes_[k] = std::min(nodes_[2 * k], nodes_[2 * k + 1]);
}

// Goes left from the leaf before `end` by the largest subtrees that fit, until one contains a value that is too small;
// then descends to that value.
size_t MinTree::first_of_run(size_t end, int32_t least) const {
    if (end == 0) return 0;
    size_t k = end + num_leaves_;
    do {
        --k;
        while (k > 1 && k % 2 == 1) k /= 2;
        if (nodes_[k] >= least) continue;
        while (k < num_leaves_) {
            k = 2 * k + 1;
            if (nodes_[k] >= least) --k;
        }
        return k + 1 - num_leaves_;
    } while (!std::has_single_bit(k));
    return 0;
}

// Goes right in the same way.
size_t MinTree::end_of_run(size_t begin, int32_t least) const {
    if (begin >= size_) return size_;
    size_t k = begin + num_leaves_;
    do {
        while (k % 2 == 0) k /= 2;
        if (nodes_[k] < least) {
            while (k < num_leaves_) {
                k = 2 * k;
                if (nodes_[k] >= least) ++k;
            }
            return k - num_leaves_;
        }
        ++k;
    } while (!std::has_single_bit(k));
    return size_;
}

MaxTree::MaxTree(size_t size) : num_leaves_(std::bit_ceil(std::max<size_t>(1, size))), nodes_(2 * num_leaves_, -1) {}

void MaxTree::set(size_t index, int32_t value) {
    for (size_t k = index + num_leaves_; k > 0; k /= 2) nodes_[k] = value;
}

int32_t MaxTree::greatest(size_t begin, size_t end) const {
    int32_t greatest = -1;
    size_t left = begin + num_leaves_;
    size_t right = end + num_leaves_;
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2 == 1) greatest = std::max(greatest, nodes_[left++]);
        if (right % 2 == 1) greatest = std::max(greatest, nodes_[--right]);
    }
    return greatest;
}

namespace {

std::vector<int32_t> inverse(const std::vector<int32_t>& permutation) {
    std::vector<int32_t> inverted(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i) {
        inverted[static_cast<size_t>(permutation[i])] = static_cast<int32_t>(i);
    }
    return inverted;
}

}  // namespace

ExactMatcher::ExactMatcher(Bytes text, const Params& params, size_t begin, size_t end)
    : text_(text.subspan(begin, end - begin)),
      params_(params),
      begin_(begin),
      suffixes_(suffix_array(text_)),
      ranks_(inverse(suffixes_)),
      lcp_(lcp_array(text_, suffixes_, ranks_)),
      active_(text_.size()),
      latest_(text_.size()) {}

// Adds the positions before an offset, and removes those that have left the window.
void ExactMatcher::advance_to(size_t offset) {
    for (; next_ < offset; ++next_) {
        const auto rank = static_cast<size_t>(ranks_[next_]);
        active_.insert(rank);
        latest_.set(rank, static_cast<int32_t>(next_));
        if (next_ >= params_.window) active_.erase(static_cast<size_t>(ranks_[next_ - params_.window]));
    }
}

Match ExactMatcher::find(size_t position) {
    const size_t offset = position - begin_;
    advance_to(offset);
    const size_t most = std::min<size_t>(params_.max_length, text_.size() - offset);
    const auto rank = static_cast<size_t>(ranks_[offset]);
    size_t length = 0;
    for (const size_t other : {active_.before(rank), active_.after(rank)}) {
        if (other == RankSet::kNone) continue;
        const auto source = static_cast<size_t>(suffixes_[other]);
        length = std::max(length, common_prefix(text_.data() + source, text_.data() + offset, most));
    }
    if (length < params_.min_length) return {};
    const auto least = static_cast<int32_t>(length);
    // lcp[r] is for ranks r - 1 and r.
    const size_t first = lcp_.first_of_run(rank + 1, least);
    const size_t last = lcp_.end_of_run(rank + 1, least);
    const int32_t nearest = latest_.greatest(first > 0 ? first - 1 : 0, last);
    return {static_cast<uint32_t>(length), static_cast<uint32_t>(offset - static_cast<size_t>(nearest))};
}

}  // namespace fastcompress::lz77
