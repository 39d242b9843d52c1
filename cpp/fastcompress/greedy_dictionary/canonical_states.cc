#include "fastcompress/greedy_dictionary/canonical_states.h"

#include <algorithm>
#include <numeric>

#include "fastcompress/common/read_once.h"

namespace fastcompress::greedy_dictionary {
namespace {

constexpr uint32_t kNone = Dictionary::kNone;

void clear_bits(std::span<uint8_t> row, size_t begin, size_t end) {
    for (; begin < end && begin % 8 != 0; ++begin) row[begin / 8] &= static_cast<uint8_t>(~(1u << begin % 8));
    for (; end - begin >= 8; begin += 8) row[begin / 8] = 0;
    for (; begin < end; ++begin) row[begin / 8] &= static_cast<uint8_t>(~(1u << begin % 8));
}

}  // namespace

CanonicalStates::CanonicalStates(std::shared_ptr<const Dictionary> dictionary)
    : dictionary_(std::move(dictionary)), node_of_state_{kNone} {
    const auto& nodes = dictionary_->nodes();
    state_of_node_.resize(nodes.size());
    is_string_.resize(nodes.size());
    for (uint32_t i = 0; i < nodes.size(); ++i) {
        is_string_[i] = nodes[i].length == dictionary_->length(nodes[i].match);
        if (nodes[i].nodes_end == i + 1) continue;
        state_of_node_[i] = static_cast<uint32_t>(node_of_state_.size());
        node_of_state_.push_back(i);
    }
    // What is pending with a string is shorter, so it comes first.
    std::vector<uint32_t> order(node_of_state_.size() - 1);
    std::iota(order.begin(), order.end(), 1);
    std::ranges::stable_sort(order, {}, [&](uint32_t state) { return nodes[node_of_state_[state]].length; });
    shorter_.resize(node_of_state_.size());
    num_tokens_.resize(node_of_state_.size());
    for (const uint32_t state : order) find_shorter(state);
}

// Returns the node of a prefix of strings; kNone if it is none.
uint32_t CanonicalStates::node_of(Bytes text) const {
    const auto& table = dictionary_->table();
    const uint8_t* next = text.data();
    const uint8_t* const end = next + text.size();
    TrieTable::State state = table.start(next, end);
    for (; next < end && state != 0; ++next) state = table.step(state, *next);
    return state == 0 ? kNone : table.node(state);
}

// Finds the state of the longest string that is pending with a state's and shorter than it: encode of the state's string
// without its first tokens, as few as possible. Counts the tokens.
void CanonicalStates::find_shorter(uint32_t state) {
    const Dictionary::Node& whole = dictionary_->nodes()[node_of_state_[state]];
    // The first string with this prefix begins with the prefix.
    const Bytes text = dictionary_->string(whole.begin).first(whole.length);
    const uint8_t* const end = text.data() + text.size();
    const uint8_t* next = text.data();
    size_t num_tokens = 0;
    while (next < end && shorter_[state] == kInitial) {
        dictionary_->longest(next, end);
        ++num_tokens;
        const uint32_t node = next < end ? node_of(Bytes(next, end)) : kNone;
        if (node != kNone) shorter_[state] = state_of_node_[node];
    }
    num_tokens_[state] = static_cast<uint8_t>(num_tokens + num_tokens_[shorter_[state]]);
    max_unstable_tokens_ = std::max(max_unstable_tokens_, size_t{num_tokens_[state]});
}

std::optional<uint32_t> CanonicalStates::advance(uint32_t state, uint32_t id) const {
    const auto& table = dictionary_->table();
    const Bytes text = dictionary_->string(id);
    uint32_t after = state_of_node_[dictionary_->node_of(id)];
    bool is_longest = true;
    for (; state != kInitial; state = shorter_[state]) {
        TrieTable::State walked = table.state_of(dictionary_->nodes()[node_of_state_[state]].slot);
        for (const uint8_t byte : text) {
            walked = table.step(walked, byte);
            if (walked == 0) break;
            if (is_string_[table.node(walked)]) return std::nullopt;
        }
        if (walked == 0 || !is_longest) continue;
        // The walk ends at a node that is no string, so it has extensions.
        after = state_of_node_[table.node(walked)];
        is_longest = false;
    }
    return after;
}

template <class Id>
Status CanonicalStates::states_before(uint32_t first, std::span<const Id> ids, std::span<uint32_t> states) const {
    uint32_t state = first;
    for (size_t i = 0; i < ids.size(); ++i) {
        states[i] = state;
        const uint32_t id = read_once(ids[i]);
        if (id >= dictionary_->size()) {
            return unknown_token("id " + std::to_string(id) + " at position " + std::to_string(i) +
                                 " is not one of the dictionary's " + std::to_string(dictionary_->size()));
        }
        const std::optional<uint32_t> after = advance(state, id);
        if (!after) {
            return invalid_data("id " + std::to_string(id) + " at position " + std::to_string(i) +
                                " is illegal there: the ids are not what encode gives for any text");
        }
        state = *after;
    }
    states[ids.size()] = state;
    return {};
}

template Status CanonicalStates::states_before(uint32_t, std::span<const uint16_t>, std::span<uint32_t>) const;
template Status CanonicalStates::states_before(uint32_t, std::span<const uint32_t>, std::span<uint32_t>) const;

void CanonicalStates::write_row(uint32_t state, std::span<uint8_t> row) const {
    std::ranges::fill(row, uint8_t{0xff});
    if (dictionary_->size() % 8 != 0) row.back() = static_cast<uint8_t>((1u << dictionary_->size() % 8) - 1);
    for (; state != kInitial; state = shorter_[state]) clear_extensions(node_of_state_[state], row);
}

// Clears the tokens that begin with any q such that the node's string followed by q is a string. Of these only the
// shortest matter, and only those that are prefixes of strings themselves.
void CanonicalStates::clear_extensions(uint32_t node, std::span<uint8_t> row) const {
    const auto& nodes = dictionary_->nodes();
    const auto& table = dictionary_->table();
    const size_t depth = nodes[node].length;
    std::array<TrieTable::State, Dictionary::kMaxLength> walked;  // [n]: of the n + 1 bytes after the node's string
    for (uint32_t i = node + 1; i < nodes[node].nodes_end;) {
        const size_t at = nodes[i].length - depth - 1;
        const uint8_t* next = &nodes[i].byte;
        walked[at] = at == 0 ? table.start(next, next + 1) : table.step(walked[at - 1], nodes[i].byte);
        if (walked[at] != 0 && !is_string_[i]) {
            ++i;
            continue;
        }
        if (walked[at] != 0) {
            const Dictionary::Node& forbidden = nodes[table.node(walked[at])];
            clear_bits(row, forbidden.begin, forbidden.end);
        }
        i = nodes[i].nodes_end;
    }
}

}  // namespace fastcompress::greedy_dictionary
