#include "fastcompress/archive/match_tree.h"

#include <bit>

#include "fastcompress/lz77/text_compare.h"

namespace fastcompress::archive {
namespace {

constexpr unsigned kThreeBits = 16;

unsigned hash_bits_for(size_t size) {
    return std::clamp(static_cast<unsigned>(std::bit_width(size)), 10u, 19u);
}

uint32_t hash_three(const uint8_t* text) {
    const uint32_t bytes = uint32_t{text[0]} | uint32_t{text[1]} << 8 | uint32_t{text[2]} << 16;
    return bytes * 0x9e3779b1u >> (32 - kThreeBits);
}

uint32_t hash_four(const uint8_t* text, unsigned bits) {
    const uint32_t bytes =
        uint32_t{text[0]} | uint32_t{text[1]} << 8 | uint32_t{text[2]} << 16 | uint32_t{text[3]} << 24;
    return bytes * 0x9e3779b1u >> (32 - bits);
}

}  // namespace

MatchTree::MatchTree(Bytes text, uint32_t depth, uint32_t nice)
    : text_(text),
      depth_(depth),
      nice_(nice),
      hash_bits_(hash_bits_for(text.size())),
      last_of_two_(size_t{1} << 16),
      last_of_three_(size_t{1} << kThreeBits),
      roots_(size_t{1} << hash_bits_),
      children_(2 * text.size()) {}

template <bool kReports>
Match* MatchTree::visit(Match* out) {
    const size_t here = position_++;
    const size_t most = std::min<size_t>(text_.size() - here, nice_);
    const uint8_t* const at = text_.data() + here;
    const auto now = static_cast<uint32_t>(here + 1);
    if (most < 4) return out;
    size_t longest = 1;
    const auto try_last = [&](uint32_t& last, size_t least) {
        const uint32_t candidate = std::exchange(last, now);
        if (!kReports || candidate == 0) return;
        const size_t length = lz77::common_prefix(text_.data() + candidate - 1, at, most);
        if (length < least || length <= longest) return;
        longest = length;
        *out++ = {static_cast<uint32_t>(length), now - candidate};
    };
    try_last(last_of_two_[at[0] | size_t{at[1]} << 8], 2);
    try_last(last_of_three_[hash_three(at)], 3);
    uint32_t& root = roots_[hash_four(at, hash_bits_)];
    return split<kReports>(std::exchange(root, now), most, longest, out);
}

template <bool kReports>
Match* MatchTree::split(uint32_t candidate, size_t most, size_t longest, Match* out) {
    const size_t here = position_ - 1;
    const uint8_t* const at = text_.data() + here;
    uint32_t* smaller = &children_[2 * here];  // where the next smaller node is attached
    uint32_t* greater = &children_[2 * here + 1];
    size_t smaller_length = 0;  // all smaller nodes from here on share at least this many bytes with the text
    size_t greater_length = 0;
    for (uint32_t left = depth_; candidate != 0 && left > 0; --left) {
        const uint8_t* const other = text_.data() + candidate - 1;
        uint32_t* const pair = &children_[2 * size_t{candidate - 1}];
        const size_t known = std::min(smaller_length, greater_length);
        const size_t length = known + lz77::common_prefix(other + known, at + known, most - known);
        if (kReports && length > longest) {
            longest = length;
            *out++ = {static_cast<uint32_t>(length), static_cast<uint32_t>(here + 1) - candidate};
        }
        if (length == most) {  // equal up to the limit: the position replaces the other one
            *smaller = pair[0];
            *greater = pair[1];
            return out;
        }
        if (other[length] < at[length]) {
            *smaller = candidate;
            smaller = pair + 1;
            candidate = pair[1];
            smaller_length = length;
        } else {
            *greater = candidate;
            greater = pair;
            candidate = pair[0];
            greater_length = length;
        }
    }
    *smaller = 0;
    *greater = 0;
    return out;
}

template Match* MatchTree::visit<true>(Match*);
template Match* MatchTree::visit<false>(Match*);

}  // namespace fastcompress::archive
