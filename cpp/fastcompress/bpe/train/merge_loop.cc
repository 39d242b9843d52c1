#include "fastcompress/bpe/train/merge_loop.h"

#include <algorithm>

namespace fastcompress::bpe {
namespace {

// The order of the heap, whose top is the largest: the most frequent pair, then the smallest pair, then the oldest
// list.
bool comes_later(const MergeLoop::Candidate& a, const MergeLoop::Candidate& b) {
    if (a.count != b.count) return a.count < b.count;
    if (a.pair != b.pair) return a.pair > b.pair;
    return a.list > b.list;
}

// The first threshold is the number of all occurrences divided by kEvenShares times the number of merges wanted. (32k
// merges of English end at counts well above that. If counts fall below it, all pairs are counted again, which costs
// little.)
constexpr size_t kEvenShares = 48;
constexpr int64_t kThresholdDivisor = 8;
constexpr size_t kLeastCollection = size_t{1} << 18;
constexpr size_t kPrefetchDistance = 12;

}  // namespace

MergeLoop::MergeLoop(SymbolArray symbols, const MergeRules& rules, size_t num_merges)
    : symbols_(std::move(symbols)), rules_(rules) {
    left_neighbours_.assign(symbols_.num_symbols(), 0);
    right_neighbours_.assign(symbols_.num_symbols(), 0);
    int64_t total = 0;
    if (!rules.huggingface) symbols_.for_each_pair([&](Position, TokenId, TokenId, int64_t count) { total += count; });
    const auto shares = static_cast<int64_t>(std::max<size_t>(1, num_merges) * kEvenShares);
    threshold_ = std::max(lowest_threshold(), total / shares);
    index_pairs();
}

// A pair with a lower count is never merged.
int64_t MergeLoop::lowest_threshold() const {
    return rules_.huggingface ? 1 : rules_.min_frequency;
}

bool MergeLoop::may_merge(TokenId left, TokenId right) const {
    const uint64_t length = uint64_t{symbols_.length(left)} + symbols_.length(right);
    return rules_.huggingface ? length < rules_.max_token_bytes : length <= rules_.max_token_bytes;
}

// Counts all pairs again and keeps the frequent ones.
void MergeLoop::index_pairs() {
    pairs_.clear();
    lists_.assign(1, {0, 0, kNoList});  // list kNoList stands for no list
    heap_.clear();
    positions_.shrink(0);
    PairCounts all;  // Slot::list is the number of positions here
    symbols_.for_each_pair([&](Position, TokenId left, TokenId right, int64_t count) {
        PairCounts::Slot& slot = all.insert(make_pair(left, right));
        slot.count += count;
        ++slot.list;
    });
    size_t num_positions = 0;
    all.for_each([&](const PairCounts::Slot& slot) {
        const TokenId left = left_of(slot.pair());
        const TokenId right = right_of(slot.pair());
        const bool two_bytes = symbols_.length(left) + symbols_.length(right) == 2;
        if (slot.count < threshold_ || !(may_merge(left, right) || (rules_.huggingface && two_bytes))) return;
        const auto list = static_cast<uint32_t>(lists_.size());
        PairCounts::Slot& kept = pairs_.insert(slot.pair());
        kept.count = slot.count;
        kept.list = list;
        lists_.push_back({num_positions, 0, kNoList});
        num_positions += slot.list;
        heap_.push_back({slot.count, slot.pair(), list});
    });
    all.clear();
    std::make_heap(heap_.begin(), heap_.end(), comes_later);

    positions_.set_capacity(num_positions);
    positions_.extend(num_positions);
    symbols_.for_each_pair([&](Position position, TokenId left, TokenId right, int64_t) {
        const PairCounts::Slot* slot = pairs_.find(make_pair(left, right));
        if (slot == nullptr) return;
        List& list = lists_[slot->list];
        positions_[list.begin + list.size++] = position;
    });
    collect_at_ = std::max(kLeastCollection, num_positions + num_positions / 2);
}

std::optional<MergeLoop::Candidate> MergeLoop::pop_most_frequent() {
    for (;;) {
        if (heap_.empty() || (!rules_.huggingface && heap_.front().count < threshold_)) {
            if (threshold_ <= lowest_threshold()) return std::nullopt;
            threshold_ = std::max(lowest_threshold(), threshold_ / kThresholdDivisor);
            index_pairs();
            continue;
        }
        const Candidate top = heap_.front();
        const int64_t count = pairs_.find(top.pair)->count;
        if (count == top.count) {
            if (count < rules_.min_frequency) return std::nullopt;
            std::pop_heap(heap_.begin(), heap_.end(), comes_later);
            heap_.pop_back();
            return top;
        }
        std::pop_heap(heap_.begin(), heap_.end(), comes_later);
        if (count >= threshold_ || rules_.huggingface) {
            heap_.back().count = count;
            std::push_heap(heap_.begin(), heap_.end(), comes_later);
        } else {
            lists_[top.list].size = 0;
            heap_.pop_back();
        }
    }
}

void MergeLoop::merge(const Candidate& candidate, TokenId result) {
    if (result == symbols_.num_symbols()) {
        symbols_.add_symbol(symbols_.length(left_of(candidate.pair)) + symbols_.length(right_of(candidate.pair)));
        left_neighbours_.push_back(0);
        right_neighbours_.push_back(0);
    }
    visit_occurrences(occurrences(candidate), candidate.pair, result);
    lists_[candidate.list].size = 0;
    if (rules_.huggingface) {
        count_all_pairs(candidate.pair, result);
    } else {
        count_frequent_pairs(candidate.pair, result);
    }
    push_made_pairs(result);
    if (positions_.size() > collect_at_) collect_positions();
}

// Returns the positions to visit: those of the candidate and, if its pair has other lists (huggingface), the positions
// of these lists in the same pretokens.
std::span<const MergeLoop::Position> MergeLoop::occurrences(const Candidate& candidate) {
    const List& list = lists_[candidate.list];
    const std::span<const Position> own(positions_.data() + list.begin, list.size);
    if (!rules_.huggingface) return own;
    const uint32_t newest = pairs_.find(candidate.pair)->list;
    if (newest == candidate.list && list.older == kNoList) return own;

    std::vector<uint32_t> pretokens;
    for (const Position p : own) pretokens.push_back(symbols_.pretoken_at(p));
    union_.assign(own.begin(), own.end());
    for (uint32_t other = newest; other != kNoList; other = lists_[other].older) {
        if (other == candidate.list) continue;
        for (uint32_t i = 0; i < lists_[other].size; ++i) {
            const Position p = positions_[lists_[other].begin + i];
            if (std::ranges::binary_search(pretokens, symbols_.pretoken_at(p))) union_.push_back(p);
        }
    }
    std::ranges::sort(union_);
    return union_;
}

void MergeLoop::visit_occurrences(std::span<const Position> positions, Pair pair, TokenId result) {
    const TokenId left = left_of(pair);
    const TokenId right = right_of(pair);
    const uint32_t left_length = symbols_.length(left);
    const uint32_t right_length = symbols_.length(right);
    for (size_t i = 0; i < positions.size(); ++i) {
        if (i + kPrefetchDistance < positions.size()) symbols_.prefetch(positions[i + kPrefetchDistance]);
        const Position p = positions[i];
        const Position q = p + left_length;
        if (!symbols_.is_at(p, left, right)) continue;
        const int64_t count = symbols_.count_at(p);
        const TokenId before = symbols_.before(p);
        if (!SymbolArray::is_boundary(before)) {
            const uint32_t n = neighbour(before, true, count);
            ++neighbours_[n].num_positions;
            events_.push_back({n, p - symbols_.length(before)});
        }
        const TokenId after = symbols_.at(q + right_length);
        if (!SymbolArray::is_boundary(after)) {
            uint32_t n = neighbour(after, false, count);
            if (after == result) n = neighbour(result, true, 0);  // one list for the pair (result, result)
            ++neighbours_[n].num_positions;
            events_.push_back({n, p});
        }
        symbols_.merge(p, q, right_length, result);
    }
}

// Adds `count` to the weight of a symbol on one side. Returns its index in neighbours_.
uint32_t MergeLoop::neighbour(TokenId symbol, bool is_left, int64_t count) {
    uint32_t& known = (is_left ? left_neighbours_ : right_neighbours_)[symbol];
    if (known == 0) {
        neighbours_.push_back({symbol, is_left, 0, 0, 0, kNowhere});
        known = static_cast<uint32_t>(neighbours_.size());
    }
    neighbours_[known - 1].weight += count;
    return known - 1;
}

// When A B becomes X in A B A B, the second occurrence breaks the pair X A that the first one has just made. X is new,
// so all of its pairs are made in this merge, and X A is the only kind that is broken again.
void MergeLoop::count_frequent_pairs(Pair pair, TokenId result) {
    for (Neighbour& n : neighbours_) n.made = n.weight;
    if (const uint32_t again = left_neighbours_[result]; again != 0) {
        neighbours_[right_neighbours_[left_of(pair)] - 1].made -= neighbours_[again - 1].weight;
    }
    subtract_broken_pairs(pair);
}

// The same if X may be an old symbol: the table contains every pair, so the sums are made there.
void MergeLoop::count_all_pairs(Pair pair, TokenId result) {
    for (const Neighbour& n : neighbours_) {
        if (may_merge(n.symbol, result)) pairs_.insert(made_pair(n, result)).count += n.weight;
    }
    subtract_broken_pairs(pair);
    for (Neighbour& n : neighbours_) {
        if (const PairCounts::Slot* slot = pairs_.find(made_pair(n, result))) n.made = slot->count;
    }
}

void MergeLoop::subtract_broken_pairs(Pair pair) {
    for (const Neighbour& n : neighbours_) {
        const Pair broken = n.is_left ? make_pair(n.symbol, left_of(pair)) : make_pair(right_of(pair), n.symbol);
        if (PairCounts::Slot* slot = pairs_.find(broken)) slot->count -= n.weight;
    }
}

// Adds every new pair that is frequent enough to the heap, with a list of its positions.
void MergeLoop::push_made_pairs(TokenId result) {
    for (Neighbour& n : neighbours_) {
        (n.is_left ? left_neighbours_ : right_neighbours_)[n.symbol] = 0;
        if (n.made < threshold_ || n.num_positions == 0 || !may_merge(n.symbol, result)) continue;
        const Pair pair = made_pair(n, result);
        PairCounts::Slot& slot = pairs_.insert(pair);
        slot.count = n.made;
        n.cursor = positions_.size();
        lists_.push_back({positions_.size(), n.num_positions, slot.list});
        slot.list = static_cast<uint32_t>(lists_.size() - 1);
        positions_.extend(n.num_positions);
        heap_.push_back({n.made, pair, slot.list});
        std::push_heap(heap_.begin(), heap_.end(), comes_later);
    }
    for (const Event& event : events_) {
        Neighbour& n = neighbours_[event.neighbour];
        if (n.cursor != kNowhere) positions_[n.cursor++] = event.position;
    }
    neighbours_.clear();
    events_.clear();
}

// Drops the positions of popped lists, and those where the pair no longer is. (Under the rules of Hugging Face the
// latter are kept, because they determine the pretokens that a merge visits.)
void MergeLoop::collect_positions() {
    std::vector<Candidate> live = heap_;
    std::ranges::sort(live, {}, &Candidate::list);  // lists with a larger index begin later
    size_t kept = 0;
    for (const Candidate& candidate : live) {
        List& list = lists_[candidate.list];
        const size_t begin = kept;
        for (size_t i = list.begin; i < list.begin + list.size; ++i) {
            if (i + kPrefetchDistance < positions_.size()) symbols_.prefetch(positions_[i + kPrefetchDistance]);
            const Position p = positions_[i];
            if (rules_.huggingface || symbols_.is_at(p, left_of(candidate.pair), right_of(candidate.pair)))
                positions_[kept++] = p;
        }
        list.begin = begin;
        list.size = static_cast<uint32_t>(kept - begin);
    }
    positions_.shrink(kept);
    collect_at_ = std::max(kLeastCollection, kept + kept / 2);
}

}  // namespace fastcompress::bpe
