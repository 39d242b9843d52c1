// Powers of two whose exponents have 16 fractional bits, from two tables: no floats, and no library whose rounding may
// differ.
#pragma once

#include <cstdint>

namespace fastcompress::arithmetic {

extern const uint32_t kExp2Coarse[256];  // round(2^31 2^(-j / 2^8))
extern const uint32_t kExp2Fine[256];    // round(2^31 2^(-j / 2^16))

// Returns about 2^(30 - x / 2^16), at most 2^30: floor(coarse fine / 2^(32 + whole part of x)).
inline uint32_t exp2_of_minus(uint32_t x) {
    const uint32_t whole = x >> 16;
    if (whole > 30) return 0;
    const uint64_t product = uint64_t{kExp2Coarse[x >> 8 & 0xff]} * kExp2Fine[x & 0xff];
    return static_cast<uint32_t>(product >> (32 + whole));
}

}  // namespace fastcompress::arithmetic
