// SHA-256 (FIPS 180-4): the checksum and fingerprint of every file this library writes.
#pragma once

#include <array>
#include <cstdint>

#include "fastcompress/common/bytes.h"

namespace fastcompress {

using Sha256Digest = std::array<uint8_t, 32>;

// Computes the digest of bytes that arrive in pieces. O(n); allocates nothing.
class Sha256 {
  public:
    // `portable` selects the code without SHA-256 instructions, as on processors that do not have them.
    explicit Sha256(bool portable = false);
    void update(Bytes bytes);
    // Returns the digest of all bytes. Nothing may be called after it.
    Sha256Digest finish();

  private:
    void (*compress_)(std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t num_blocks);
    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<uint8_t, 64> block_{};  // its first num_bytes_ % 64 bytes are not hashed yet
    uint64_t num_bytes_ = 0;
};

inline Sha256Digest sha256(Bytes message) {
    Sha256 hash;
    hash.update(message);
    return hash.finish();
}

}  // namespace fastcompress
