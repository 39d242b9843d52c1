// SHA-256 (FIPS 180-4): the checksum and fingerprint of every file this library writes.
#pragma once

#include <array>
#include <cstdint>

#include "fastcompress/common/bytes.h"

namespace fastcompress {

using Sha256Digest = std::array<uint8_t, 32>;

// O(n), no allocation.
Sha256Digest sha256(Bytes message);

}  // namespace fastcompress
