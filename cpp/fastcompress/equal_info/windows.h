// Equal-info windows of 24 to 128 bits, and whole documents, coded by a frozen model. WINDOWS in FORMAT.md.
//
// A window is a message of its own, of exactly W bits, that begins with an empty context. After every byte a flag says
// whether the window ends there. Its probability depends on how many bits are left, which the decoder knows as well:
// nearly nothing where many are, a good deal where the next byte will hardly fit. So the decoder never guesses where a
// window ends, and a window is exactly the bytes it was made of. (Published windows end where the next byte would not
// fit, say so nowhere, and do not always come back: Lester et al., 2404.03626; fastcompress.equal_info.paper counts
// them.)
//
// Lemma: at least one byte fits. A first byte takes at most 17 bits (its frequencies are at least 2^-16), and a window
// with r >= 1 bits left can always be ended, as the flag's probability is then above 2^-r.
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

// Bytes, and how many of them became known with each byte of the code: whatever follows it could not change them.
struct DecodedBytes {
    std::vector<uint8_t> bytes;
    std::vector<uint32_t> num_known;
};

// Const functions of one object may run in several threads at once.
class WindowCoder {
  public:
    // `model` is frozen, and must outlive it. 24 <= window_bits <= 128, a multiple of 8.
    WindowCoder(const context_mixer::ContextMixer& model, unsigned window_bits);

    size_t window_bytes() const { return window_bits_ / 8; }

    // The windows of a text, each as long as it can be: window_bytes() each. O(n).
    std::vector<uint8_t> encode(Bytes data) const;

    // What windows stand for; an error names the first that stands for nothing, or the bound if there are more than
    // max_bytes. (Some windows that no text gives decode, too: those whose flags and filling are not what the encoder
    // writes.)
    Result<DecodedBytes> decode(Bytes windows, size_t max_bytes) const;

  private:
    size_t encode_window(Bytes data, uint8_t* window) const;
    int64_t bits_left(uint64_t bits_used) const { return int64_t{window_bits_} - static_cast<int64_t>(bits_used); }

    const context_mixer::ContextMixer& model_;
    unsigned window_bits_;
    std::array<uint32_t, 257> first_byte_;  // cumulative frequencies of 2^16
};

// A whole document as one message, with a flag of probability 2^-16 before every byte and at the end to say whether it
// ends there. O(n).
std::vector<uint8_t> encode_document(const context_mixer::ContextMixer& model, Bytes data);
// An error if the message does not end, or stands for more than max_bytes. What follows it is not looked at.
Result<DecodedBytes> decode_document(const context_mixer::ContextMixer& model, Bytes message, size_t max_bytes);

}  // namespace fastcompress::equal_info
