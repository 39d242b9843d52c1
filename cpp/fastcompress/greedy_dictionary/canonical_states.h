// Which token may come next: the states of the greedy parse. A sequence of tokens is what encode gives for its bytes if
// and only if every step of it is legal; FORMAT.md ("Legality") proves it.
//
// A string of earlier tokens is pending if some longer string of the dictionary begins with it, that is, if it is an
// inner node of the trie. The next token u is illegal if for a pending p and a prefix q of u, not empty, p + q is a
// string: encode would have taken it where p begins. All that is pending after legal tokens follows from the longest of
// it, since they are encode of its bytes. So a state is one inner node, or state 0: nothing is pending. `shorter` leads
// from a node to the longest other one that is pending with it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/status.h"
#include "fastcompress/greedy_dictionary/dictionary.h"

namespace fastcompress::greedy_dictionary {

// Immutable, and safe to use from several threads.
class CanonicalStates {
  public:
    static constexpr uint32_t kInitial = 0;

    // O(nodes) for all dictionaries that were tried, and O(nodes * longest string ^ 2) for some.
    explicit CanonicalStates(std::shared_ptr<const Dictionary> dictionary);

    const Dictionary& dictionary() const { return *dictionary_; }
    // States are numbered from 0; each of them is reached by some legal sequence.
    size_t size() const { return node_of_state_.size(); }

    // The largest number of tokens at the end of an encoding that may change when bytes are appended: the most that can
    // be pending together. O(1).
    size_t max_unstable_tokens() const { return max_unstable_tokens_; }

    // Returns the state after one more token, or nullopt if that is illegal. Requires a state and an id that exist.
    // O(length of the token * pending strings).
    std::optional<uint32_t> advance(uint32_t state, uint32_t id) const;

    // Writes the state before each of the ids, and after the last one, to `states`, which has one more item than `ids`.
    // kUnknownToken if an id does not exist, kInvalidData if one is illegal.
    template <class Id>
    Status states_before(uint32_t first, std::span<const Id> ids, std::span<uint32_t> states) const;

    // The bytes of a row: one bit per id, the lowest bit first.
    size_t row_bytes() const { return (dictionary_->size() + 7) / 8; }
    // Sets the bits of the ids that are legal in a state, and clears the others. Requires a state that exists, and a
    // row of row_bytes().
    void write_row(uint32_t state, std::span<uint8_t> row) const;

  private:
    uint32_t node_of(Bytes text) const;
    void find_shorter(uint32_t state);
    void clear_extensions(uint32_t node, std::span<uint8_t> row) const;

    std::shared_ptr<const Dictionary> dictionary_;
    std::vector<uint32_t> node_of_state_;
    std::vector<uint32_t> state_of_node_;  // 0 for a node that nothing extends
    std::vector<uint32_t> shorter_;        // of a state
    std::vector<uint8_t> num_tokens_;      // of a state: tokens in encode of its string
    size_t max_unstable_tokens_ = 0;
    std::vector<bool> is_string_;  // of a node
};

}  // namespace fastcompress::greedy_dictionary
