// Greedy dictionaries: any set of strings that holds all single bytes, and the longest match in it. FORMAT.md defines
// them and their file, and proves what canonical_states.h says of them.
//
// An id is the rank of its string in lexicographic order. A text is encoded as the longest string that it begins with,
// followed by the encoding of the rest. Unlike a codebook (equal_info/codebook.h), a dictionary need not hold the
// prefixes of its strings, so that it spends no ids on strings that texts never stop at.
//
// Example: with "the" and "then" beside the single bytes, "thens the" is "then", "s", " ", "the". With "then" alone,
// "the" is "t", "h", "e": the walk in the trie goes on to a node that is no string, and comes back.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/common/status.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::greedy_dictionary {

using equal_info::TrieTable;

// Immutable, and safe to use from several threads.
class Dictionary {
  public:
    static constexpr size_t kMinStrings = 256;
    static constexpr size_t kMaxStrings = size_t{1} << 16;
    static constexpr size_t kMaxNodes = TrieTable::kMaxNodes;    // distinct prefixes of the strings
    static constexpr size_t kMaxLength = TrieTable::kMaxLength;  // of a string, in bytes

    // The first bytes of every file.
    static constexpr std::array<uint8_t, 8> kMagic = {0x89, 'F', 'C', 'G', 'D', 'I', '\r', '\n'};

    static constexpr uint32_t kNone = UINT32_MAX;

    // A prefix of strings: a node of the trie, in preorder.
    struct Node {
        uint32_t parent;  // kNone for a single byte
        uint32_t begin;   // the ids whose strings begin with this prefix are [begin, end)
        uint32_t end;
        uint32_t match;      // the id of the longest string that this prefix begins with
        uint32_t nodes_end;  // the nodes that extend this one, and it itself, are those up to here
        uint32_t slot;       // in the trie's table
        uint8_t byte;        // its last one
        uint8_t length;
    };

    // Makes a dictionary of these strings, in any order. kInvalidArgument if there are too few or too many, one occurs
    // twice, is empty or too long, a single byte is missing, or they have too many prefixes. O(n log n) for n bytes.
    static Result<Dictionary> from_strings(std::vector<std::string> strings);

    // Returns the file. parse() accepts only what serialize() returned: kMalformed otherwise. O(bytes).
    std::vector<uint8_t> serialize() const;
    static Result<Dictionary> parse(Bytes file);
    // The SHA-256 of the file without its last 32 bytes, which are this digest.
    const Sha256Digest& fingerprint() const { return fingerprint_; }

    size_t size() const { return lengths_.size(); }
    Bytes string(uint32_t id) const { return {blob_.data() + begins_[id], lengths_[id]}; }
    const std::vector<uint8_t>& lengths() const { return lengths_; }
    const std::vector<Node>& nodes() const { return nodes_; }
    // The node of a string.
    uint32_t node_of(uint32_t id) const { return node_of_id_[id]; }

    // What parse_greedily asks (equal_info/greedy_parse.h).
    const TrieTable& table() const { return table_; }
    size_t length(uint32_t id) const { return lengths_[id]; }
    uint32_t id_of_slot(uint32_t slot) const { return id_of_slot_[slot]; }
    size_t excess_of_slot(uint32_t slot) const { return excess_of_slot_[slot]; }
    // Returns the longest string that the non-empty range [next, end) begins with; moves `next` past it.
    uint32_t longest(const uint8_t*& next, const uint8_t* end) const {
        TrieTable::State state = table_.start(next, end);
        for (; next < end; ++next) {
            const TrieTable::State further = table_.step(state, *next);
            if (further == 0) break;
            state = further;
        }
        const uint32_t slot = TrieTable::slot(state);
        next -= excess_of_slot_[slot];
        return id_of_slot_[slot];
    }

    // Appends the ids of a text to `ids`; on std::bad_alloc these are as before. The result is the same for every
    // number of threads. Near O(text); O(text * longest string) for strings made to be slow.
    void encode(Bytes text, size_t num_threads, std::vector<uint32_t>& ids) const;

    // Returns the number of bytes that ids decode to. kUnknownToken if an id does not exist. O(ids).
    template <class Id>
    Result<size_t> decoded_bytes(std::span<const Id> ids) const;
    // Writes those bytes to `out`, which is decoded_bytes() long. Returns false, and never writes outside of `out`, if
    // another thread has changed the ids so that they no longer fill it. O(ids + bytes).
    template <class Id>
    [[nodiscard]] bool decode(std::span<const Id> ids, std::span<uint8_t> out) const;

  private:
    Dictionary() = default;
    // Makes a dictionary of strings that ascend strictly.
    static Result<Dictionary> make(std::vector<Bytes> strings);
    Status add_nodes(const std::vector<Bytes>& strings);
    void fill_table();

    static constexpr size_t kWide = 16;  // bytes that decoding copies at once

    std::vector<uint8_t> lengths_;
    std::vector<uint8_t> blob_;  // the strings one after the other, and kWide bytes of room
    std::vector<uint32_t> begins_;
    std::vector<Node> nodes_;
    std::vector<uint32_t> node_of_id_;
    TrieTable table_;
    std::vector<uint32_t> id_of_slot_;
    std::vector<uint8_t> excess_of_slot_;
    Sha256Digest fingerprint_{};
};

}  // namespace fastcompress::greedy_dictionary
