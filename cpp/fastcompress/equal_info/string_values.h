// Values the strings of a trie, and their extensions by one byte, by what they are worth to the greedy parse of a
// corpus. codebook_trainer.h defines the value and trains with it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::equal_info {

struct Document {
    Bytes text;
    std::span<const uint64_t> ends;  // ends of pieces that no string may cross, up to the size of the text; or empty
};

// The value of one byte more has kShares parts: `saving` of them for the tokens that it saves, the others for the byte.
inline constexpr uint32_t kShares = 20;

// Sums modulo 2^32 over a parse, so the order of additions does not matter.
struct Tally {
    explicit Tally(size_t num_strings) : gains(num_strings * 256), losses(num_strings) {}
    void add(const Tally& other) {
        num_bytes += other.num_bytes;
        num_tokens += other.num_tokens;
        for (size_t i = 0; i < losses.size(); ++i) losses[i] += other.losses[i];
        for (size_t i = 0; i < gains.size(); ++i) gains[i] += other.gains[i];
    }
    int32_t gain(size_t node, size_t byte) const { return static_cast<int32_t>(gains[node * 256 + byte]); }
    uint64_t num_bytes = 0;
    uint64_t num_tokens = 0;
    HugeArray<uint32_t> gains;     // [256 i + b]: the value of adding string i extended by byte b
    std::vector<uint32_t> losses;  // [i]: the loss of dropping string i
};

// A corpus that is parsed repeatedly. The documents must outlive it.
class TrainingCorpus {
  public:
    // Values are sums over at most this many bytes. They fit 32 bits for all texts but those that repeat one string
    // over and over; there they are wrong, but not undefined.
    static constexpr size_t kMaxSampleBytes = size_t{1} << 27;

    TrainingCorpus(std::span<const Document> documents, size_t num_threads);
    // Returns the values in a parse of at most most_bytes bytes, plus a block of 64 KiB per thread, with the trie's
    // strings. O(bytes).
    std::unique_ptr<Tally> parse(std::span<const uint32_t> parents, std::span<const uint8_t> bytes, size_t most_bytes,
                                 uint32_t saving);

  private:
    // A part of a document, parsed alone, which costs less than one token per block.
    struct Block {
        Bytes text;
        std::vector<uint64_t> ends;  // ends of pieces in the block, up to its size; or empty
    };
    class LongestStrings;
    class BlockParser;

    std::vector<Block> blocks_;
    size_t num_bytes_ = 0;
    size_t num_threads_;
    uint32_t twice_length_ = 2;  // twice the mean length of a token in bytes, in the last parse
};

}  // namespace fastcompress::equal_info
