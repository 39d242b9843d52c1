// A parse as one stream of ids from a small alphabet, as in deflate and LZMA (FORMAT.md, "Buckets").
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fastcompress/lz77/params.h"
#include "fastcompress/lz77/repeat_offsets.h"

namespace fastcompress::lz77 {

// The ids, in this order: bytes, buckets of lengths, repeat offsets, buckets of distances, extra bits.
class BucketAlphabet {
  public:
    static constexpr uint32_t kNumBytes = 256;
    static constexpr int kBitsOfExtra = 4;

    // Requires params that pass check().
    explicit BucketAlphabet(const Params& params);

    uint32_t first_length() const { return kNumBytes; }
    uint32_t first_repeat_offset() const { return first_length() + num_lengths_; }
    uint32_t first_distance() const { return first_repeat_offset() + kNumRepeatOffsets; }
    uint32_t first_extra() const { return first_distance() + num_distances_; }
    uint32_t num_ids() const { return first_extra() + (1u << kBitsOfExtra); }
    // The largest number of ids that one token can take.
    uint32_t most_ids() const;

    // Checks tokens from any source. kMalformed for the first that no parse with these params can contain. O(n).
    Status check(const TokenColumns& tokens) const;

    // Encodes tokens that check() has accepted. O(n).
    std::vector<uint32_t> encode(const TokenColumns& tokens) const;

    // Decodes ids from any source. Also returns the number of bytes that become known with each id: all bytes of a
    // token with its last id. Ignores an incomplete token at the end. kMalformed for the first id that cannot stand
    // there. O(n).
    struct Decoded {
        TokenColumns tokens;
        std::vector<int64_t> byte_lengths;  // for each id, the number of bytes that become known with it
    };
    Result<Decoded> decode(std::span<const uint32_t> ids) const;

  private:
    Params params_;
    uint32_t num_lengths_;
    uint32_t num_distances_;
};

}  // namespace fastcompress::lz77
