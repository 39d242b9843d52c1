#include "fastcompress/bpe/encode/long_merge.h"

#include <algorithm>
#include <cstring>

namespace fastcompress::bpe {
namespace {

// How far windows overlap: the less, the less is merged twice; the more, the more often two of them agree.
constexpr uint32_t kWindowOverlap = 14;

// Pieces that are merged by queue. Their buffers stay in the second-level cache.
constexpr uint32_t kQueueBytes = 8192;
constexpr uint32_t kQueueOverlap = 1024;

// How much is merged so once windows have failed.
constexpr uint32_t kBytesByQueue = 4 * kQueueBytes;

// After a longer pretoken the buffers are given back.
constexpr size_t kMaxKeptBytes = size_t{1} << 14;

// Whether text goes on as a short string over and over. If so windows would do many merges, all the same.
bool is_repetitive(Bytes text) {
    constexpr size_t kMaxPeriod = 32;
    constexpr size_t kBytes = 256;
    if (text.size() < kBytes + kMaxPeriod) return false;
    for (size_t period = 1; period <= kMaxPeriod; ++period) {
        if (std::memcmp(text.data(), text.data() + period, kBytes) == 0) return true;
    }
    return false;
}

}  // namespace

void LongMerger::merge(Bytes pretoken, TokenBuffer& out) {
    if (!windows_) windows_ = std::make_unique<Windows>(vocabulary_);
    text_ = pretoken;
    done_.ids.clear();
    done_.ends.clear();
    done_.ids.reserve(pretoken.size() / 2);
    done_.ends.reserve(pretoken.size() / 2);
    piece_.ends.clear();  // it was of another text
    piece_.begin = 0;
    num_by_queue_ = 0;
    budget_ = 2 * pretoken.size() + kQueueBytes;
    if (!merge_in_pieces()) merge_by_rank(0, static_cast<uint32_t>(pretoken.size()), done_);
    out.append(done_.ids);
    if (pretoken.size() <= kMaxKeptBytes) return;
    done_ = {};
    piece_ = {};
    queue_ = {};
}

// False if pieces do not agree and the budget is spent.
bool LongMerger::merge_in_pieces() {
    while (done_.end() < text_.size()) {
        const uint32_t before = done_.end();
        if (num_by_queue_ == 0 && !is_repetitive(text_.subspan(before))) {
            if (!advance_by_windows()) return false;
            continue;
        }
        if (!repeat_last_piece() && !advance_by_queue(kQueueBytes - kQueueOverlap, kQueueOverlap)) return false;
        num_by_queue_ -= std::min(num_by_queue_, done_.end() - before);
    }
    return true;
}

bool LongMerger::advance_by_windows() {
    constexpr uint32_t kStride = Windows::kBytes - kWindowOverlap;
    const auto size = static_cast<uint32_t>(text_.size());
    const uint32_t first = last_boundary(kWindowOverlap);
    if (first + Windows::kBytes <= done_.end()) {  // the last token is longer than a window
        num_by_queue_ = kBytesByQueue;
        return true;
    }
    const uint32_t rest = size - first;
    const uint32_t count = rest <= Windows::kBytes
                               ? 1
                               : std::min(Windows::kMaxCount, 1 + (rest - Windows::kBytes + kStride - 1) / kStride);
    windows_->lanes.merge(
        count,
        [&](size_t i) {
            const Bytes from = text_.subspan(first + i * kStride);
            return from.first(std::min<size_t>(Windows::kBytes, from.size()));
        },
        [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t> ends) {
            Windows::Result& result = windows_->results[i];
            result.count = static_cast<uint32_t>(ids.size());
            std::ranges::copy(ids, result.ids.begin());
            std::ranges::copy(ends, result.ends.begin());
        });
    uint32_t num_failed = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const Windows::Result& result = windows_->results[i];
        const uint32_t begin = first + i * kStride;
        if (stitch(begin, std::span(result.ids).first(result.count),
                   [&](size_t k) { return begin + result.ends[k]; })) {
            continue;
        }
        constexpr uint32_t kNearby = 64;
        if (!advance_by_queue(begin + result.ends[result.count - 1] - done_.end(), kNearby)) return false;
        if (++num_failed > Windows::kMaxCount / 4) num_by_queue_ = kBytesByQueue;
        if (num_by_queue_ > 0) break;
    }
    return true;
}

// Merges the next num_bytes by queue together with what is done of at least `overlap` bytes before them, and with more
// if that does not agree with what was done. False if the budget is spent.
bool LongMerger::advance_by_queue(uint32_t num_bytes, size_t overlap) {
    const uint32_t end = done_.end() + static_cast<uint32_t>(std::min<size_t>(num_bytes, text_.size() - done_.end()));
    for (;; overlap *= 4) {
        const uint32_t begin = last_boundary(overlap);
        if (budget_ < end - begin) return false;
        budget_ -= end - begin;
        merge_by_rank(begin, end, piece_);
        if (stitch(begin, piece_.ids, [&](size_t i) { return piece_.ends[i]; })) return true;
        if (overlap >= 256) num_by_queue_ = kBytesByQueue;
    }
}

// If the text goes on with what was merged by queue last, its tokens are known.
bool LongMerger::repeat_last_piece() {
    constexpr int kMaxTries = 64;
    const uint32_t size = piece_.end() - piece_.begin;
    if (size < 2 * kQueueOverlap || done_.end() < size) return false;
    const auto is_before = [&](uint32_t end) { return end + kQueueOverlap <= done_.end(); };
    size_t i = static_cast<size_t>(std::ranges::partition_point(done_.ends, is_before) - done_.ends.begin());
    for (int k = 0; k < kMaxTries && i > 0; ++k) {
        const uint32_t begin = done_.ends[--i];
        if (begin + size <= done_.end()) return false;
        if (text_.size() - begin < size || std::memcmp(&text_[begin], &text_[piece_.begin], size) != 0) continue;
        const uint32_t shift = begin - piece_.begin;
        return stitch(begin, piece_.ids, [&](size_t j) { return piece_.ends[j] + shift; });
    }
    return false;
}

// The last boundary of tokens at least `distance` bytes before the end of what is done.
uint32_t LongMerger::last_boundary(size_t distance) const {
    const uint32_t end = done_.end();
    if (end <= distance) return 0;
    size_t i = done_.ends.size();
    while (i > 0 && done_.ends[i - 1] > end - distance) --i;
    return i > 0 ? done_.ends[i - 1] : 0;
}

// Goes on from a token that is both in what is done and among `ids`, which are what merging from `begin` on gives, to at
// least where done_ ends. False, and nothing is changed, if there is none.
template <class End>
bool LongMerger::stitch(uint32_t begin, std::span<const TokenId> ids, const End& end_of) {
    size_t num_kept = 0;
    size_t j = 0;
    if (begin > 0) {
        size_t i = done_.ends.size();
        while (i > 0 && done_.ends[i - 1] >= begin) --i;
        uint32_t start = done_.ends[i++];  // tokens i of done_ and j of ids, from their first bytes on
        uint32_t other_start = begin;
        for (;;) {
            if (i == done_.ends.size() || j == ids.size()) return false;
            const uint32_t end = done_.ends[i];
            const uint32_t other_end = end_of(j);
            if (end <= other_end) ++i;
            if (end >= other_end) ++j;
            if (start == other_start && end == other_end) break;
            if (end <= other_end) start = end;
            if (end >= other_end) other_start = other_end;
        }
        num_kept = i;
    }
    const size_t count = num_kept + ids.size() - j;
    done_.ids.resize(count);
    done_.ends.resize(count);
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(j), ids.end(),
              done_.ids.begin() + static_cast<std::ptrdiff_t>(num_kept));
    for (size_t i = num_kept; j < ids.size(); ++i, ++j) done_.ends[i] = end_of(j);
    return true;
}

// Merges bytes [begin, end) a rank at a time. Each merge queues at most two positions, so this is O(n log n).
void LongMerger::merge_by_rank(uint32_t begin, uint32_t end, Piece& piece) {
    const Bytes bytes = text_.subspan(begin, end - begin);
    const uint32_t size = end - begin;
    queue_.tokens.assign(vocabulary_, bytes);
    queue_.ranks.resize(size);
    queue_.queue.clear();
    for (uint32_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_rank(bytes[i], bytes[i + 1]));
    queue_.ranks[size - 1] = kNoRank;
    while (!queue_.queue.empty()) merge_next_rank();
    piece.begin = begin;
    piece.ids.clear();
    piece.ends.clear();
    for (uint32_t i = 0; i < size; i = queue_.tokens.next(i)) {
        piece.ids.push_back(queue_.tokens.id(i));
        piece.ends.push_back(begin + queue_.tokens.next(i));
    }
}

// Notes the rank of the pair that begins at a position, and returns it. A position that is queued with another rank is
// stale from then on.
uint32_t LongMerger::set_pair(uint32_t position, uint32_t rank) {
    queue_.ranks[position] = rank;
    if (rank != kNoRank) queue_.queue.add(rank, position);
    return rank;
}

// Prefetches what the pair table says of the pairs that merging the one at `position` will make.
void LongMerger::prefetch_pairs(uint32_t position, uint32_t rank) const {
    if (queue_.ranks[position] != rank) return;
    const TokenList& tokens = queue_.tokens;
    const PairTable& pairs = vocabulary_.pairs();
    const TokenId result = vocabulary_.merge_result(rank);
    const uint32_t after = tokens.next(tokens.next(position));
    if (after < tokens.size()) pairs.prefetch(pairs.locate(result, tokens.id(after)));
    if (position > 0) pairs.prefetch(pairs.locate(tokens.id(tokens.previous(position)), result));
}

// Merges the pairs of the lowest rank in the queue, from left to right.
void LongMerger::merge_next_rank() {
    constexpr size_t kAhead = 6;  // the number of positions between prefetch and merge
    TokenList& tokens = queue_.tokens;
    std::vector<uint32_t>& ranks = queue_.ranks;
    std::vector<uint32_t>& positions = queue_.positions;
    const uint32_t rank = queue_.queue.take_lowest(positions);
    const TokenId result = vocabulary_.merge_result(rank);
    for (size_t k = 0; k < std::min(kAhead, positions.size()); ++k) prefetch_pairs(positions[k], rank);
    for (size_t k = 0; k < positions.size(); ++k) {
        if (k + kAhead < positions.size()) prefetch_pairs(positions[k + kAhead], rank);
        const uint32_t i = positions[k];
        if (ranks[i] != rank) continue;
        ranks[tokens.merge(i, result)] = ranks[i] = kNoRank;
        const uint32_t after = tokens.next(i);
        uint32_t lowest_new = kNoRank;
        if (after < tokens.size()) lowest_new = set_pair(i, vocabulary_.find_rank(result, tokens.id(after)));
        if (i > 0) {
            const uint32_t before = tokens.previous(i);
            lowest_new = std::min(lowest_new, set_pair(before, vocabulary_.find_rank(tokens.id(before), result)));
        }
        if (lowest_new < rank) {  // in a rank file a longer token may come first: then it is its turn
            while (++k < positions.size()) queue_.queue.add(rank, positions[k]);
        }
    }
}

}  // namespace fastcompress::bpe
