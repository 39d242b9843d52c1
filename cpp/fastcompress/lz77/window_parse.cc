// Parses a text in chunks: the chains (window_chains.h) are extended over a chunk, and then the chunk is parsed.
//
// Following a chain is bound by latency: each step needs the link that the step before has loaded, about 14 cycles from
// the second-level cache, and a search cannot begin before the last one has found the length of its match. So the chunk
// is divided into three segments, and three lanes, each parsing one segment, take steps in turn, so that their waits
// overlap. This works because the match at a position depends on the text alone. A lane begins at the start of its
// segment, which may lie inside a token; once one of its tokens begins where a token of the true parse begins, all
// later tokens agree.
//
//   segment 0                 | segment 1                  The true parse continues from the end of lane 0, token by
//   [the ][quick ][brown fo...|...x ][jumps ][over ]       token, until it meets the beginning of a token of lane 1,
//                             | [x][ ju][mps ][over ]      here after "jumps ". The rest of lane 1 is taken as it is.
//
// On ordinary text that takes a few tokens. Where it never happens (one byte repeated, say) the work is at most
// doubled.
//
// Steps per search: 11 in English, 9 in code. Nanoseconds per byte, English / code, of 2^15 heads: one lane 15.1 /
// 10.0, two 11.1 / 8.6, three 10.0 / 7.5, four 9.9 / 7.6. Tried and dropped: positions sorted by hash in blocks of the
// window, with 16-bit positions (the version before: 14.7 / 12.5), also with the next byte of each position beside it,
// so that a vector comparison excludes most (15.2 / 12.0: half of the positions pass, and sorting writes one table
// more).
#include "fastcompress/lz77/window_parse.h"

#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "fastcompress/common/targets.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/window_chains.h"

namespace fastcompress::lz77 {
namespace {

constexpr size_t kNumLanes = 3;
constexpr size_t kChunkBytes = size_t{1} << 14;
constexpr size_t kSegmentBytes = kChunkBytes / kNumLanes + 1;
constexpr size_t kFewBytes = 1024;     // shorter stretches are parsed without lanes
constexpr size_t kReadableBytes = 16;  // the number of bytes that a lane reads at a position without a bounds check
static_assert(kChunkBytes + 1 <= WindowChains::kMaxAhead);

uint32_t load_half_word(const uint8_t* p) {
    uint32_t word;
    std::memcpy(&word, p, 4);
    return word;
}

// The tokens of one segment that a lane has found.
struct Segment {
    std::array<uint8_t, kSegmentBytes> kinds;
    std::array<uint32_t, kSegmentBytes> values;
    std::array<uint32_t, kSegmentBytes> lengths;
    size_t num_tokens = 0;
    size_t begin = 0;
    size_t end = 0;      // no token begins here or after
    size_t reached = 0;  // where the last token ends
};

// The current search in a segment. Lanes are local variables of one function, so that they stay in registers.
struct Lane {
    ptrdiff_t candidate = 0;
    ptrdiff_t lowest = 0;  // the first position in the window
    uint64_t gram = 0;     // the bytes that a candidate must share to be counted
    uint32_t tail = 0;     // the bytes it must share to be better, the last one just after the best length
    const uint8_t* tail_text = nullptr;  // the text at the offset of the tail: tail_text + position is its address
    uint32_t num_left = 0;               // the number of candidates that may still be counted
    Match best;                          // while there is none, its length is one less than a match needs
    Match earlier;                       // lazy: the match one byte before, which only a longer match replaces
    size_t position = 0;
    size_t num_tokens = 0;
    size_t end = 0;  // the end of the segment; 0 once the lane has ended
};

// kIsFour: min_length is 4, so two comparisons of four bytes replace words and masks.
template <bool kIsFour, bool kIsLazy>
class LaneParser {
  public:
    LaneParser(Bytes text, const Params& params)
        : text_(text),
          params_(params),
          chains_(text, params.min_length),
          segments_(text.size() > kFewBytes ? kNumLanes : 0) {}  // 145 KB, not to be cleared for a short text

    void parse(TokenColumns& out) {
        for (size_t begin = 0; begin < text_.size(); begin += kChunkBytes) {
            const size_t end = std::min(begin + kChunkBytes, text_.size());
            chains_.extend(end + 1);  // a lazy parse searches one byte further
            if (done_ < end && end - done_ > kFewBytes) {
                run_lanes(end);
                for (const Segment& segment : segments_) join(segment, out);
            }
            done_ = parse_plainly(end, out);
        }
    }

  private:
    // Returns the match at a position, found as FORMAT.md defines it. Used where the lanes leave gaps.
    Match find(size_t position) const {
        if (position + params_.min_length > text_.size()) return {};
        const uint8_t* const target = text_.data() + position;
        const size_t most = std::min<size_t>(params_.max_length, text_.size() - position);
        const ptrdiff_t lowest = lowest_at(position);
        uint32_t num_left = params_.depth;
        Match best;
        auto candidate = static_cast<ptrdiff_t>(position);
        while (num_left > 0 && best.length < most && (candidate = chains_.before(candidate)) >= lowest) {
            const uint8_t* const source = text_.data() + candidate;
            if (!chains_.gram().equal(source, target)) continue;
            --num_left;
            if (source[best.length] != target[best.length]) continue;
            const size_t length = common_prefix(source, target, most);
            if (length > best.length) {
                best = {static_cast<uint32_t>(length), static_cast<uint32_t>(target - source)};
            }
        }
        return best;
    }
    ptrdiff_t lowest_at(size_t position) const {
        return position > params_.window ? static_cast<ptrdiff_t>(position - params_.window) : 0;
    }
    // Continues the parse from done_ until a token ends at or after `end`. Returns where it ends.
    size_t parse_plainly(size_t end, TokenColumns& out) const {
        const auto find_here = [&](size_t position) { return find(position); };
        const auto emit = [&](const Token& token) { out.push(token); };
        return parse_range(text_, params_, done_, end, find_here, emit);
    }

    void run_lanes(size_t end);
    Lane first_search(size_t k, size_t end);
    FASTCOMPRESS_INLINED void start(Lane& lane, size_t position, uint32_t length) const;
    FASTCOMPRESS_INLINED void step(Lane& lane, Segment& segment, const uint8_t* text, size_t& num_running) const;
    FASTCOMPRESS_INLINED void set_tail(Lane& lane) const;
    FASTCOMPRESS_INLINED bool improve(Lane& lane, const uint8_t* text) const;
    FASTCOMPRESS_INLINED void finish(Lane& lane, Segment& segment, size_t& num_running) const;
    FASTCOMPRESS_INLINED static void stop(Lane& lane, size_t position, size_t& num_running);
    FASTCOMPRESS_INLINED static void emit(Lane& lane, Segment& segment, const Token& token);
    void join(const Segment& segment, TokenColumns& out);

    Bytes text_;
    Params params_;
    WindowChains chains_;
    std::vector<Segment> segments_;
    size_t done_ = 0;  // the parse is complete up to this position
};

// Parses the segments up to `end`. All but the first begin at a position that may lie inside a token.
template <bool kIsFour, bool kIsLazy>
void LaneParser<kIsFour, kIsLazy>::run_lanes(size_t end) {
    Lane a = first_search(0, end);
    Lane b = first_search(1, end);
    Lane c = first_search(2, end);
    const uint8_t* const text = text_.data();
    size_t num_running = (a.end > 0) + size_t{b.end > 0} + (c.end > 0);
    while (num_running > 0) {
        step(a, segments_[0], text, num_running);
        step(b, segments_[1], text, num_running);
        step(c, segments_[2], text, num_running);
    }
    const auto note = [](Segment& segment, size_t num_tokens, size_t reached) {
        segment.num_tokens = num_tokens;
        segment.reached = reached;
    };
    note(segments_[0], a.num_tokens, a.position);
    note(segments_[1], b.num_tokens, b.position);
    note(segments_[2], c.num_tokens, c.position);
}

// Assigns segment k its share of the bytes [done_, end). A segment ends early if a lane would read past the end of the
// text.
template <bool kIsFour, bool kIsLazy>
Lane LaneParser<kIsFour, kIsLazy>::first_search(size_t k, size_t end) {
    const size_t share = (end - done_ + kNumLanes - 1) / kNumLanes;
    assert(share <= kSegmentBytes);
    Segment& segment = segments_[k];
    segment.begin = std::min(done_ + k * share, end);
    segment.end = std::min(segment.begin + share, end);
    Lane lane;
    lane.lowest = std::numeric_limits<ptrdiff_t>::max();
    lane.position = segment.begin;
    const size_t limit = std::min(segment.end, text_.size() - std::min(text_.size(), kReadableBytes));
    if (segment.begin < limit) {
        lane.end = limit;
        start(lane, segment.begin, params_.min_length - 1);
    }
    return lane;
}

// Begins the search at a position for a match of more than `length` bytes.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::start(Lane& lane, size_t position, uint32_t length) const {
    const uint8_t* const target = text_.data() + position;
    lane.position = position;
    lane.candidate = static_cast<ptrdiff_t>(position);
    lane.lowest = lowest_at(position);
    lane.num_left = params_.depth;
    lane.best = {length, 0};
    lane.gram = kIsFour ? load_half_word(target) : load_word(target);
    set_tail(lane);
}

// Sets the bytes that a candidate must share to be longer than the best match: its last three bytes and one more with
// kIsFour, otherwise the one after it.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::set_tail(Lane& lane) const {
    lane.tail_text = text_.data() + lane.best.length - (kIsFour ? 3 : 0);
    const uint8_t* const tail = lane.tail_text + lane.position;
    lane.tail = kIsFour ? load_half_word(tail) : *tail;
}

// Examines the next candidate.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::step(Lane& lane, Segment& segment, const uint8_t* text,
                                                             size_t& num_running) const {
    lane.candidate = chains_.before(lane.candidate);
    if (lane.candidate >= lane.lowest) [[likely]] {
        const uint8_t* const source = text + lane.candidate;
        const uint8_t* const tail = lane.tail_text + lane.candidate;
        bool counts;
        bool may_be_better;
        if constexpr (kIsFour) {
            counts = load_half_word(source) == static_cast<uint32_t>(lane.gram);
            may_be_better = load_half_word(tail) == lane.tail;
        } else {
            counts = chains_.gram().equal_words(load_word(source), lane.gram);
            may_be_better = *tail == lane.tail;
        }
        lane.num_left -= counts;
        bool goes_on = lane.num_left > 0;
        if (counts & may_be_better) [[unlikely]]
            goes_on &= improve(lane, text);
        if (goes_on) [[likely]]
            return;
    }
    if (lane.end > 0) finish(lane, segment, num_running);
}

// Makes a candidate the best match if it is longer. Returns false if no other can be longer.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED bool LaneParser<kIsFour, kIsLazy>::improve(Lane& lane, const uint8_t* text) const {
    const auto most = static_cast<uint32_t>(std::min<size_t>(params_.max_length, text_.size() - lane.position));
    const uint8_t* const target = text + lane.position;
    const auto length = static_cast<uint32_t>(common_prefix(text + lane.candidate, target, most));
    if (length <= lane.best.length) return true;
    lane.best = {length, static_cast<uint32_t>(static_cast<ptrdiff_t>(lane.position) - lane.candidate)};
    if (length == most) return false;
    set_tail(lane);
    return true;
}

// Applies the rule (parse_range) to the result of a search, and begins the next one.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::finish(Lane& lane, Segment& segment,
                                                               size_t& num_running) const {
    Match match = lane.best.distance == 0 ? Match{} : lane.best;
    size_t position = lane.position;
    if constexpr (kIsLazy) {
        if (lane.earlier.length > 0) {
            if (match.length > 0) {
                emit(lane, segment, Token::literal(text_[position - 1]));
                if (position >= lane.end) return stop(lane, position, num_running);
            } else {
                --position;
                match = std::exchange(lane.earlier, {});
            }
        }
    }
    const bool is_decided = !kIsLazy || position < lane.position || match.length == 0;
    const size_t most = std::min<size_t>(params_.max_length, text_.size() - position - 1);
    if (kIsLazy && !is_decided && match.length < most) {
        lane.earlier = match;
        return start(lane, position + 1, match.length);
    }
    if constexpr (kIsLazy) lane.earlier = {};
    const bool is_literal = match.length == 0;
    emit(lane, segment,
         {is_literal ? TokenKind::kLiteral : TokenKind::kMatch, is_literal ? text_[position] : match.distance,
          is_literal ? 1 : match.length});
    position += is_literal ? 1 : match.length;
    if (position < lane.end) return start(lane, position, params_.min_length - 1);
    stop(lane, position, num_running);
}

// Ends a lane: from here on its steps do nothing.
template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::stop(Lane& lane, size_t position, size_t& num_running) {
    lane.position = position;
    lane.candidate = 0;
    lane.lowest = std::numeric_limits<ptrdiff_t>::max();
    lane.end = 0;
    --num_running;
}

template <bool kIsFour, bool kIsLazy>
FASTCOMPRESS_INLINED void LaneParser<kIsFour, kIsLazy>::emit(Lane& lane, Segment& segment, const Token& token) {
    const size_t k = lane.num_tokens++;
    segment.kinds[k] = static_cast<uint8_t>(token.kind);
    segment.values[k] = token.value;
    segment.lengths[k] = token.length;
}

// Continues the parse until it meets the tokens of the segment, and appends the rest of them.
template <bool kIsFour, bool kIsLazy>
void LaneParser<kIsFour, kIsLazy>::join(const Segment& segment, TokenColumns& out) {
    size_t position = segment.begin;
    size_t k = 0;
    while (done_ < segment.end) {
        while (k < segment.num_tokens && position < done_) position += segment.lengths[k++];
        if (position == done_) {
            out.append(std::span(segment.kinds).subspan(k, segment.num_tokens - k),
                       std::span(segment.values).subspan(k, segment.num_tokens - k),
                       std::span(segment.lengths).subspan(k, segment.num_tokens - k));
            done_ = segment.reached;
            return;
        }
        done_ = parse_plainly(done_ + 1, out);
    }
}

}  // namespace

bool is_window_parse(const Params& params) {
    return params.window <= WindowChains::kMaxWindow && params.min_length <= WindowChains::kMaxMinLength &&
           params.depth != kUnlimited;
}

void parse_in_window(Bytes text, const Params& params, TokenColumns& out) {
    assert(is_window_parse(params) && text.size() <= kMaxTextBytes);
    const bool is_lazy = params.rule == ParseRule::kLazy;
    if (params.min_length == 4) {
        is_lazy ? LaneParser<true, true>(text, params).parse(out) : LaneParser<true, false>(text, params).parse(out);
    } else {
        is_lazy ? LaneParser<false, true>(text, params).parse(out) : LaneParser<false, false>(text, params).parse(out);
    }
}

}  // namespace fastcompress::lz77
