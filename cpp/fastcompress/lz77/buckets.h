// A parse as one stream of ids from a small vocabulary, as deflate and LZMA write theirs. FORMAT.md, "Buckets".
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fastcompress/lz77/params.h"
#include "fastcompress/lz77/repeat_offsets.h"

namespace fastcompress::lz77 {

// The ids: bytes, buckets of lengths, repeat offsets, buckets of distances, extra bits.
class BucketAlphabet {
  public:
    static constexpr uint32_t kNumBytes = 256;
    static constexpr int kBitsOfExtra = 4;

    // Valid params.
    explicit BucketAlphabet(const Params& params);

    uint32_t first_length() const { return kNumBytes; }
    uint32_t first_repeat_offset() const { return first_length() + num_lengths_; }
    uint32_t first_distance() const { return first_repeat_offset() + kNumRepeatOffsets; }
    uint32_t first_extra() const { return first_distance() + num_distances_; }
    uint32_t num_ids() const { return first_extra() + (1u << kBitsOfExtra); }
    // The most ids that one token becomes.
    uint32_t most_ids() const;

    // Checks tokens from anywhere: kMalformed for the first that no parse with the params has. O(n).
    Status check(const TokenColumns& tokens) const;

    // Encodes tokens that check() has passed. O(n).
    std::vector<uint32_t> encode(const TokenColumns& tokens) const;

    // The tokens that ids, from anywhere, stand for, and how many bytes become known with each id: all of a token's
    // with its last. An incomplete token at the end is left out. Or what is wrong with the first bad id. O(n).
    struct Decoded {
        TokenColumns tokens;
        std::vector<int64_t> byte_lengths;  // of each id
    };
    Result<Decoded> decode(std::span<const uint32_t> ids) const;

  private:
    Params params_;
    uint32_t num_lengths_;
    uint32_t num_distances_;
};

}  // namespace fastcompress::lz77
