// Codebooks: equal-info windows of at most 16 bits as a static dictionary. FORMAT.md defines them, their file and
// what is proved of them.
//
// A codebook of W bits is a prefix-closed set of 2^W - 1 byte strings that holds all 256 single bytes. An id is the
// rank of its string in lexicographic order, so the trie's nodes are numbered in preorder. A text is encoded by the
// longest string that it begins with, and so on (greedy). Every window of W bits thus stands for at least one byte,
// decodes to exactly what it encoded, and an id is left for the end of a document.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/common/status.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::equal_info {

// Immutable, and safe to use from several threads.
class Codebook {
  public:
    static constexpr unsigned kMinBits = 9;
    static constexpr unsigned kMaxBits = 16;
    static constexpr size_t kMaxLength = TrieTable::kMaxLength;  // of a string, in bytes
    static constexpr size_t kMaxPatternBytes = 255;              // of a pattern's name

    static constexpr size_t num_strings(unsigned bits) { return (size_t{1} << bits) - 1; }

    // What every file begins with.
    static constexpr std::array<uint8_t, 8> kMagic = {0x89, 'F', 'C', 'B', 'O', 'K', '\r', '\n'};

    // A string in preorder: its length, and its last byte; the rest is that of the last one before it that is one
    // shorter.
    struct Node {
        uint8_t length;
        uint8_t byte;
        bool operator==(const Node&) const = default;
    };

    // The strings in lexicographic order. The pattern is the name of what cuts a text beforehand, "" for nothing; it
    // is kept and not looked into. kInvalidArgument: bits out of range, or what the strings lack. O(strings).
    static Result<Codebook> make(unsigned bits, std::string pattern, std::vector<Node> nodes);
    // The same from strings written out, in any order.
    static Result<Codebook> from_strings(unsigned bits, std::string pattern, std::vector<std::string> strings);

    // The file. parse() takes what serialize() gave and nothing else: kMalformed otherwise. O(bytes).
    std::vector<uint8_t> serialize() const;
    static Result<Codebook> parse(Bytes file);
    // Of the file without its last 32 bytes, which are this.
    const Sha256Digest& fingerprint() const { return fingerprint_; }

    unsigned bits() const { return bits_; }
    const std::string& pattern() const { return pattern_; }
    size_t size() const { return nodes_.size(); }
    const std::vector<Node>& nodes() const { return nodes_; }
    const TrieTable& table() const { return table_; }

    size_t length(uint32_t id) const { return nodes_[id].length; }
    Bytes string(uint32_t id) const { return {blob_.data() + begins_[id], nodes_[id].length}; }
    // The bytes that extend a string to another, ascending. Where nothing cuts texts, these are exactly the bytes
    // that no token after this one may begin with (FORMAT.md, "Legality").
    Bytes forbidden_first(uint32_t id) const {
        return {child_bytes_.data() + child_begins_[id], child_begins_[id + 1] - child_begins_[id]};
    }
    bool extends(uint32_t id, uint8_t byte) const;

    // The bytes that ids stand for, if they all exist: kUnknownToken, or kInvalidArgument past max_bytes. O(ids).
    template <class Id>
    Result<size_t> decoded_bytes(std::span<const Id> ids, size_t max_bytes = SIZE_MAX) const;
    // Writes those bytes to `out`, which is decoded_bytes() long. Returns false, and never writes outside of `out`, if
    // another thread has changed the ids so that they no longer fill it. O(ids + bytes).
    template <class Id>
    [[nodiscard]] bool decode(std::span<const Id> ids, std::span<uint8_t> out) const;

  private:
    Codebook() = default;
    void index_children(const std::vector<uint32_t>& parents);
    void write_strings();

    // A string of at most 15 bytes with its length behind it, or where a longer one is: one load instead of two.
    struct alignas(16) Entry {
        std::array<uint8_t, 16> bytes;
    };
    static constexpr size_t kMaxShort = 15;

    unsigned bits_ = 0;
    std::string pattern_;
    std::vector<Node> nodes_;
    TrieTable table_;
    std::vector<uint32_t> child_begins_;
    std::vector<uint8_t> child_bytes_;
    std::vector<uint8_t> blob_;  // the strings that no other continues; those are all the bytes there are
    std::vector<uint32_t> begins_;
    std::vector<Entry> entries_;
    Sha256Digest fingerprint_{};
};

}  // namespace fastcompress::equal_info
