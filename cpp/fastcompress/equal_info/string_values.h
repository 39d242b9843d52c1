// What each string of a trie, and each extension of one by a byte, is worth to the greedy parse of a corpus: what
// codebook_trainer.h trains by.
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
    std::span<const uint64_t>
        ends;  // of the pieces that no string may reach across, the last one the text's size; or empty
};

// Parts of the value of one byte more, that add up to kShares: for the byte, and `saving` of them for the tokens it
// saves.
inline constexpr uint32_t kShares = 20;

// Sums modulo 2^32 over a parse, hence the same whoever adds what to them when.
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
    HugeArray<uint32_t> gains;     // at 256 i + b: of adding string i extended by byte b
    std::vector<uint32_t> losses;  // of dropping a string
};

// A corpus that is parsed again and again. The documents must outlive it.
class TrainingCorpus {
  public:
    // Values are sums over so many bytes at most. With kShares for each token, and as many for each byte of a text in
    // which every token saves one, they fit 32 bits for all but texts of one string over and over; there they are
    // wrong, but not undefined.
    static constexpr size_t kMaxSampleBytes = size_t{1} << 27;

    TrainingCorpus(std::span<const Document> documents, size_t num_threads);
    // Of a parse with the trie's strings of so many bytes, or a block of 64 KiB for each thread more. O(bytes).
    std::unique_ptr<Tally> parse(std::span<const uint32_t> parents, std::span<const uint8_t> bytes, size_t most_bytes,
                                 uint32_t saving);

  private:
    // A part of a document, parsed alone: that costs less than a token a block.
    struct Block {
        Bytes text;
        std::vector<uint64_t> ends;  // in the block, the last one its size; or empty
    };
    class LongestStrings;
    class BlockParser;

    std::vector<Block> blocks_;
    size_t num_bytes_ = 0;
    size_t num_threads_;
    uint32_t twice_length_ = 2;  // of a token, in bytes, the last time
};

}  // namespace fastcompress::equal_info
