#include "fastcompress/bpe/vocabulary/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "fastcompress/unicode/char_class.h"
#include "fastcompress/unicode/text_tables.h"
#include "fastcompress/unicode/utf8.h"

namespace fastcompress::bpe {
namespace {

// Returns the last character of a text that is not empty: the one that ends with the text, among those that begin at
// one of its last four bytes. (A stray byte is one invalid character.)
unicode::DecodedCodePoint last_character(Bytes text) {
    const size_t longest = std::min<size_t>(4, text.size());
    for (size_t length = longest; length > 1; --length) {
        const unicode::DecodedCodePoint c = unicode::decode_utf8(text.data(), text.size() - length, text.size());
        if (c.length == length) return c;
    }
    return unicode::decode_utf8(text.data(), text.size() - 1, text.size());
}

bool is_space(uint32_t code_point) {
    return (unicode::class_of(code_point) & unicode::kSpace) != 0;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<Pattern> patterns)
    : patterns_(std::move(patterns)), begins_(patterns_.empty() ? 0 : size_t{1} << 16) {
    std::ranges::sort(patterns_, {}, &Pattern::text);
    add_nodes();
    for (size_t byte = 0; byte < 256; ++byte) roots_[byte] = child(0, static_cast<uint8_t>(byte));
    for (const Pattern& pattern : patterns_) {
        const auto first = static_cast<uint8_t>(pattern.text[0]);
        const bool any_second = pattern.text.size() == 1;
        const uint8_t second = any_second ? uint8_t{0} : static_cast<uint8_t>(pattern.text[1]);
        const bool is_new = beginnings_.empty() || beginnings_.back().first != first ||
                            beginnings_.back().second != second || beginnings_.back().any_second != any_second;
        if (is_new) beginnings_.push_back({first, second, any_second});
    }
    for (const Beginning& beginning : beginnings_) {
        for (size_t second = 0; second < 256; ++second) {
            if (beginning.any_second || second == beginning.second) {
                begins_[size_t{beginning.first} << 8 | second] = true;
            }
        }
    }
    if (beginnings_.size() > kMaxBeginnings) beginnings_.clear();
    if (nodes_[0].num_children == 1 && nodes_[1].byte != ' ') rare_first_byte_ = nodes_[1].byte;
}

void AddedTokenMatcher::add_nodes() {
    struct Task {  // to add the children of a node for patterns_[begin, end), which share their first `depth` bytes
        uint32_t node;
        size_t depth, begin, end;
    };
    nodes_.emplace_back();
    std::vector<Task> tasks = {{0, 0, 0, patterns_.size()}};
    while (!tasks.empty()) {
        Task task = tasks.back();
        tasks.pop_back();
        if (task.begin < task.end && patterns_[task.begin].text.size() == task.depth) {
            nodes_[task.node].pattern = static_cast<uint32_t>(task.begin++);
        }
        const auto first_child = static_cast<uint32_t>(nodes_.size());
        nodes_[task.node].first_child = first_child;
        for (size_t i = task.begin; i < task.end;) {
            const char byte = patterns_[i].text[task.depth];
            size_t next = i;
            while (next < task.end && patterns_[next].text[task.depth] == byte) ++next;
            tasks.push_back({static_cast<uint32_t>(nodes_.size()), task.depth + 1, i, next});
            nodes_.push_back({.byte = static_cast<uint8_t>(byte)});
            i = next;
        }
        nodes_[task.node].num_children = static_cast<uint16_t>(nodes_.size() - first_child);
    }
}

uint32_t AddedTokenMatcher::child(uint32_t node, uint8_t byte) const {
    const Node& parent = nodes_[node];
    const std::span<const Node> children(nodes_.data() + parent.first_child, parent.num_children);
    if (children.size() == 1) return children[0].byte == byte ? parent.first_child : kNone;
    const auto found = std::ranges::lower_bound(children, byte, {}, &Node::byte);
    if (found == children.end() || found->byte != byte) return kNone;
    return parent.first_child + static_cast<uint32_t>(found - children.begin());
}

// Returns the first position from `begin` on whose two bytes begin a token, or the position where less than a block is
// left. Proceeds by blocks, in loops that compilers vectorize.
size_t AddedTokenMatcher::skip_blocks(Bytes text, size_t begin) const {
    constexpr size_t kBlock = 64;
    size_t i = begin;
    for (; i + kBlock < text.size(); i += kBlock) {
        const uint8_t* bytes = text.data() + i;
        std::array<uint8_t, kBlock> hits{};
        for (const Beginning& beginning : beginnings_) {
            const uint8_t any = beginning.any_second;
            for (size_t k = 0; k < kBlock; ++k) {
                const bool hit = (bytes[k] == beginning.first) & ((bytes[k + 1] == beginning.second) | any);
                hits[k] = static_cast<uint8_t>(hits[k] | hit);
            }
        }
        uint8_t any_hit = 0;
        for (const uint8_t hit : hits) any_hit = static_cast<uint8_t>(any_hit | hit);
        if (any_hit != 0) return i + static_cast<size_t>(std::ranges::find(hits, uint8_t{1}) - hits.begin());
    }
    return i;
}

// Returns the first position from `begin` on whose two bytes begin some token; for the last byte of the text, whose
// byte does.
size_t AddedTokenMatcher::skip_to_candidate(Bytes text, size_t begin) const {
    for (size_t i = begin; i < text.size(); ++i) {
        if (rare_first_byte_ >= 0) {
            const void* found = std::memchr(text.data() + i, rare_first_byte_, text.size() - i);
            if (found == nullptr) return text.size();
            i = static_cast<size_t>(static_cast<const uint8_t*>(found) - text.data());
        } else if (i == begin && !beginnings_.empty()) {
            i = skip_blocks(text, i);
        }
        if (i + 1 == text.size() ? roots_[text[i]] != kNone : begins_[size_t{text[i]} << 8 | text[i + 1]]) return i;
    }
    return text.size();
}

AddedTokenMatcher::Match AddedTokenMatcher::find(Bytes text, size_t begin,
                                                 std::span<const Treatment> treatments) const {
    if (patterns_.empty()) return {text.size(), text.size(), 0};
    for (size_t i = skip_to_candidate(text, begin); i < text.size(); i = skip_to_candidate(text, i + 1)) {
        uint32_t longest = kNone;
        size_t end = i;
        size_t at = i + 1;
        for (uint32_t node = roots_[text[i]]; node != kNone;
             node = at < text.size() ? child(node, text[at++]) : kNone) {
            const uint32_t pattern = nodes_[node].pattern;
            if (pattern != kNone && treatments[patterns_[pattern].index] != Treatment::kIgnored) {
                longest = pattern;
                end = at;
            }
        }
        if (longest != kNone) return {i, end, longest};
    }
    return {text.size(), text.size(), 0};
}

bool ends_with_word(Bytes text) {
    return !text.empty() && unicode::is_word(last_character(text).value);
}

bool begins_with_word(Bytes text) {
    return !text.empty() && unicode::is_word(unicode::decode_utf8(text.data(), 0, text.size()).value);
}

size_t trailing_space_begin(Bytes text) {
    while (!text.empty()) {
        const unicode::DecodedCodePoint c = last_character(text);
        if (!is_space(c.value)) break;
        text = text.first(text.size() - c.length);
    }
    return text.size();
}

size_t leading_space_end(Bytes text) {
    size_t i = 0;
    while (i < text.size()) {
        const unicode::DecodedCodePoint c = unicode::decode_utf8(text.data(), i, text.size());
        if (!is_space(c.value)) break;
        i += c.length;
    }
    return i;
}

}  // namespace fastcompress::bpe
