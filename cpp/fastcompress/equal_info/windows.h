// Equal-info windows of 24 to 128 bits, and whole documents, coded by a frozen model: FORMAT.md, "Windows".
//
// A window is a code of its own, of exactly W bits, that begins with an empty context. After every byte a flag says
// whether the window ends there. The flag's probability depends on the number of bits left, which the decoder knows as
// well: it is tiny while many are left, and large when the next byte will hardly fit. So the decoder never guesses
// where a window ends, and a window decodes to exactly the bytes that it encoded. (Published windows end where the next
// byte would not fit, without a flag, and do not always decode correctly: Lester et al., arXiv 2404.03626;
// fastcompress.equal_info.paper counts how often.)
//
// At least one byte fits in each window: a first byte takes at most 17 bits (its frequency is at least 2^-16), and a
// window with r >= 1 bits left can always be ended, because the flag's probability is above 2^-r.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"
#include "fastcompress/context_mixer/context_mixer.h"

namespace fastcompress::equal_info {

inline constexpr unsigned kMinWindowBits = 24;
inline constexpr unsigned kMaxWindowBits = 128;

// Decoded bytes, and for each byte of the code the number of bytes that it settles: whatever follows cannot change
// them.
struct DecodedBytes {
    std::vector<uint8_t> bytes;
    std::vector<uint32_t> num_known;
};

// Const functions of one object may run in several threads at once.
class WindowCoder {
  public:
    // Requires a frozen model that outlives the coder, and window_bits from 24 to 128, a multiple of 8.
    WindowCoder(const context_mixer::ContextMixer& model, unsigned window_bits);

    size_t window_bytes() const { return window_bits_ / 8; }

    // Encodes a text to windows of window_bytes() each, every one of which holds as many bytes as it can. O(n).
    std::vector<uint8_t> encode(Bytes data) const;

    // Decodes windows. kMalformed for the first window that stands for nothing, or if there are more than max_bytes.
    // (Some windows that the encoder never writes decode as well: they end too early or are filled up differently.)
    Result<DecodedBytes> decode(Bytes windows, size_t max_bytes) const;

  private:
    size_t encode_window(Bytes data, uint8_t* window) const;
    int64_t bits_left(uint64_t bits_used) const { return int64_t{window_bits_} - static_cast<int64_t>(bits_used); }

    const context_mixer::ContextMixer& model_;
    unsigned window_bits_;
    std::array<uint32_t, 257> first_byte_;  // cumulative frequencies of 2^16
};

// Encodes a whole document as one code, with a flag of probability 2^-16 before every byte and at the end. O(n).
std::vector<uint8_t> encode_document(const context_mixer::ContextMixer& model, Bytes data);
// Decodes it. kMalformed if the code does not end, or decodes to more than max_bytes. Bytes after it are not looked at.
Result<DecodedBytes> decode_document(const context_mixer::ContextMixer& model, Bytes code, size_t max_bytes);

}  // namespace fastcompress::equal_info
