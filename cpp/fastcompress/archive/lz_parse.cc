// The parse by price is a search for the shortest path: positions are nodes and tokens are edges, which are relaxed
// once each, from left to right. The price of an edge depends on the path before it (its repeat offsets and its number
// of literals in a row), and only the best path to each node is considered. So the result is close to the lowest price,
// but not always the lowest. The path up to a node is committed when all paths go through it, after kMostNodes nodes,
// or before a match of at least `nice` bytes, which is always taken.
#include "fastcompress/archive/lz_parse.h"

#include "fastcompress/archive/match_tree.h"
#include "fastcompress/lz77/text_compare.h"

namespace fastcompress::archive {
namespace {

constexpr uint32_t kMostNodes = 1 << 13;
constexpr uint32_t kInfinite = ~uint32_t{0};

struct Node {
    uint32_t price = kInfinite;
    uint32_t length = 0;  // length of the token that ends here; 1 for a literal
    uint32_t distance = 0;
    uint32_t run = 0;  // number of literals in a row that end here
    unsigned repeat_index = 0;
    RepeatOffsets repeat_offsets;
};

class PriceParser {
  public:
    PriceParser(Bytes text, const Prices& prices, uint32_t depth, uint32_t nice)
        : text_(text),
          prices_(prices),
          nice_(nice),
          tree_(text, depth, nice),
          nodes_(kMostNodes + nice + 2),
          matches_(nice + 1) {}

    std::vector<Sequence> parse() {
        while (begin_ < text_.size()) parse_some();
        sequences_.push_back({run_, 0, 0});
        return std::move(sequences_);
    }

  private:
    void parse_some();
    void visit(uint32_t here);
    bool take_long(uint32_t here);
    void relax_literal(uint32_t here);
    void relax_match(uint32_t here, uint32_t least, uint32_t most, uint32_t price, unsigned kind, unsigned repeat_index,
                     uint32_t distance);
    void relax_matches(uint32_t here);
    void commit(uint32_t here);
    void emit_match(uint32_t distance, uint32_t length);

    Bytes text_;
    const Prices& prices_;
    uint32_t nice_;
    MatchTree tree_;
    std::vector<Node> nodes_;  // nodes_[i] is the position begin_ + i
    std::vector<Match> matches_;
    Match* matches_end_ = nullptr;
    size_t begin_ = 0;
    uint32_t last_ = 0;  // the farthest node reached
    // The parse so far:
    std::vector<Sequence> sequences_;
    RepeatOffsets repeat_offsets_;
    uint32_t run_ = 0;
};

void PriceParser::parse_some() {
    nodes_[0] = Node();
    nodes_[0].price = 1 << 24;  // not 0, because a literal has a negative price where a longer run is cheaper
    nodes_[0].run = run_;
    nodes_[0].repeat_offsets = repeat_offsets_;
    last_ = 0;
    uint32_t here = 0;
    for (;; ++here) {
        if (here > 0) {
            visit(here);
            if (here == last_ || here == kMostNodes) break;
        }
        matches_end_ = tree_.find(matches_.data());
        if (take_long(here)) return;
        relax_literal(here);
        relax_matches(here);
    }
    commit(here);
}

// Completes a node once all edges to it are relaxed.
void PriceParser::visit(uint32_t here) {
    Node& node = nodes_[here];
    const Node& before = nodes_[here - node.length];
    node.repeat_offsets = before.repeat_offsets;
    if (node.distance == 0) {
        node.run = before.run + 1;
    } else {
        node.run = 0;
        node.repeat_offsets.use(node.repeat_index, node.distance);
    }
}

// Takes the match at a node if it has at least `nice` bytes, so that no other is tried. Returns whether it does.
bool PriceParser::take_long(uint32_t here) {
    const size_t at = begin_ + here;
    const size_t most = text_.size() - at;
    uint32_t distance = 0;
    size_t length = 0;
    for (const uint32_t recent : nodes_[here].repeat_offsets.values) {
        if (recent > at) continue;
        const size_t l = lz77::common_prefix(&text_[at - recent], &text_[at], most);
        if (l > length) {
            length = l;
            distance = recent;
        }
    }
    if (length < nice_ && matches_end_ != matches_.data() && matches_end_[-1].length >= nice_) {
        distance = matches_end_[-1].distance;
        length = nice_ + lz77::common_prefix(&text_[at - distance + nice_], &text_[at + nice_], most - nice_);
    }
    if (length < nice_) return false;
    commit(here);
    emit_match(distance, static_cast<uint32_t>(length));
    begin_ += length;
    tree_.skip(begin_ - tree_.position());
    return true;
}

void PriceParser::relax_literal(uint32_t here) {
    const Node& node = nodes_[here];
    const size_t at = begin_ + here;
    const uint32_t price = node.price + prices_.literal(at) + prices_.run(node.run + 1) - prices_.run(node.run);
    if (here + 1 > last_) nodes_[++last_] = Node();
    Node& next = nodes_[here + 1];
    if (price < next.price) {
        next.price = price;
        next.length = 1;
        next.distance = 0;
    }
}

void PriceParser::relax_match(uint32_t here, uint32_t least, uint32_t most, uint32_t price, unsigned kind,
                              unsigned repeat_index, uint32_t distance) {
    const uint32_t* const lengths = prices_.lengths(kind);
    while (last_ < here + most) nodes_[++last_] = Node();
    for (uint32_t length = least; length <= most; ++length) {
        Node& next = nodes_[here + length];
        const uint32_t total = price + lengths[length];
        if (total >= next.price) continue;
        next.price = total;
        next.length = length;
        next.distance = distance;
        next.repeat_index = repeat_index;
    }
}

void PriceParser::relax_matches(uint32_t here) {
    const Node& node = nodes_[here];
    const size_t at = begin_ + here;
    const bool after_match = node.run == 0;
    const uint32_t price = node.price + prices_.run(0);
    const size_t most = std::min<size_t>(nice_, text_.size() - at);
    for (unsigned repeat_index = 0; repeat_index < kNumRepeatOffsets; ++repeat_index) {
        const uint32_t distance = node.repeat_offsets.values[repeat_index];
        if (distance > at) continue;
        const auto length = static_cast<uint32_t>(lz77::common_prefix(&text_[at - distance], &text_[at], most));
        if (length < kMinLength) continue;
        relax_match(here, kMinLength, length, price + prices_.repeat(after_match, repeat_index), repeat_index,
                    repeat_index, distance);
    }
    uint32_t least = kMinLength;
    for (const Match* match = matches_.data(); match != matches_end_; ++match) {
        const unsigned c = distance_class(match->distance);
        relax_match(here, least, match->length, price + prices_.distance(after_match, match->distance, c),
                    kNumRepeatOffsets + c, kNumRepeatOffsets, match->distance);
        least = match->length + 1;
    }
}

// Makes the best path from begin_ to a node part of the parse.
void PriceParser::commit(uint32_t here) {
    std::vector<const Node*> path;
    for (uint32_t i = here; i > 0; i -= nodes_[i].length) path.push_back(&nodes_[i]);
    for (; !path.empty(); path.pop_back()) {
        if (path.back()->distance == 0) {
            ++run_;
        } else {
            emit_match(path.back()->distance, path.back()->length);
        }
    }
    begin_ += here;
}

void PriceParser::emit_match(uint32_t distance, uint32_t length) {
    sequences_.push_back({run_, length, distance});
    run_ = 0;
    repeat_offsets_.use(repeat_offsets_.find(distance), distance);
}

}  // namespace

std::vector<Sequence> parse_lazily(Bytes text, uint32_t min_length, uint32_t depth) {
    // With a min_length above 8, lz77 takes ten times as long on texts with long runs; so shorter matches are dropped
    // here instead.
    const uint32_t least = std::min(min_length, 8u);
    const lz77::Params params = {lz77::kUnlimited, least, lz77::kUnlimited, depth, lz77::ParseRule::kLazy};
    const lz77::TokenColumns tokens = lz77::parse(text, params);
    std::vector<Sequence> sequences;
    uint32_t run = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const lz77::Token token = tokens[i];
        if (token.kind == lz77::TokenKind::kLiteral || token.length < min_length) {
            run += token.length;
        } else {
            sequences.push_back({run, token.length, token.value});
            run = 0;
        }
    }
    sequences.push_back({run, 0, 0});
    return sequences;
}

std::vector<Sequence> parse_by_price(Bytes text, const Prices& prices, uint32_t depth, uint32_t nice) {
    return PriceParser(text, prices, depth, nice).parse();
}

}  // namespace fastcompress::archive
