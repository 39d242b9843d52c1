#include "fastcompress/equal_info/windows.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace fastcompress::equal_info {
namespace {

constexpr unsigned kFirstPrecision = 16;

// The probability, in units of 2^-16, that a window with this many bits left ends here: the smallest with which it
// still can, which is 2^-bits_left and an allowance for rounding. The length of a window does not depend on the cost of
// its end, since the bits left are there anyway, but on the cost of continuing: so the end gets no more than it needs.
// (Tried: the true frequency of ends, 0.70 with 2 bits left, 0.24 with 5, 0.02 with 10; windows of 32 bits then hold 3
// % less.)
uint32_t end_probability(int64_t bits_left) {
    return bits_left > arithmetic::kBitPrecision
               ? 1
               : (1u << (arithmetic::kBitPrecision - static_cast<unsigned>(bits_left))) + 1;
}

// Assigns each decoded byte to the first byte of the code that settles it.
class KnownBytes {
  public:
    KnownBytes(Bytes code, DecodedBytes& to) : code_(code), to_(to), begin_(to.num_known.size()) {
        to.num_known.resize(begin_ + code.size());
    }
    void put(uint8_t byte, const arithmetic::RangeDecoder& decoder) {
        while (place_ + 1 < code_.size() && !decoder.is_settled_by(8 * (place_ + 1), code_)) ++place_;
        to_.bytes.push_back(byte);
        ++to_.num_known[begin_ + place_];
    }

  private:
    Bytes code_;
    DecodedBytes& to_;
    size_t begin_;
    size_t place_ = 0;
};

Status too_long(size_t max_bytes) {
    return malformed("the code stands for more than " + std::to_string(max_bytes) + " bytes");
}

}  // namespace

WindowCoder::WindowCoder(const context_mixer::ContextMixer& model, unsigned window_bits)
    : model_(model), window_bits_(window_bits) {
    assert(model.is_frozen());
    assert(window_bits >= kMinWindowBits && window_bits <= kMaxWindowBits && window_bits % 8 == 0);
    std::array<uint32_t, 256> frequencies;
    model.distribution({}, kFirstPrecision, frequencies);
    first_byte_[0] = 0;
    for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] = first_byte_[byte] + frequencies[byte];
}

size_t WindowCoder::encode_window(Bytes data, uint8_t* window) const {
    arithmetic::RangeEncoder encoder;
    context_mixer::FrozenReader reader(model_);
    const uint8_t first = data[0];
    encoder.encode(first_byte_[first], first_byte_[first + 1u] - first_byte_[first], kFirstPrecision);
    reader.skip(first);
    size_t size = 1;
    int64_t left = bits_left(encoder.bits_used());
    for (; size < data.size(); ++size) {
        const arithmetic::RangeEncoder::Snapshot before = encoder.snapshot();
        encoder.encode_bit(false, end_probability(left));
        reader.encode(data[size], encoder);
        const int64_t left_after = bits_left(encoder.bits_used());
        if (left_after < 1) {
            encoder.restore(before);
            break;
        }
        left = left_after;
    }
    encoder.encode_bit(true, end_probability(left));
    const std::vector<uint8_t> code = encoder.finish();
    std::fill(std::copy(code.begin(), code.end(), window), window + window_bytes(), uint8_t{0});
    return size;
}

std::vector<uint8_t> WindowCoder::encode(Bytes data) const {
    std::vector<uint8_t> windows;
    while (!data.empty()) {
        windows.resize(windows.size() + window_bytes());
        data = data.subspan(encode_window(data, windows.data() + windows.size() - window_bytes()));
    }
    return windows;
}

Result<DecodedBytes> WindowCoder::decode(Bytes windows, size_t max_bytes) const {
    DecodedBytes decoded;
    for (size_t begin = 0; begin < windows.size(); begin += window_bytes()) {
        const Bytes window = windows.subspan(begin, std::min(window_bytes(), windows.size() - begin));
        const auto bad = [&](const char* what) {
            return malformed("window " + std::to_string(begin / window_bytes()) + what);
        };
        if (window.size() < window_bytes()) return bad(" is cut off");
        if (decoded.bytes.size() >= max_bytes) return too_long(max_bytes);
        KnownBytes known(window, decoded);
        arithmetic::RangeDecoder decoder(window);
        context_mixer::FrozenReader reader(model_);
        const uint32_t quantile = decoder.peek(kFirstPrecision);
        const auto above = std::upper_bound(first_byte_.begin(), first_byte_.end(), quantile);
        const auto first = static_cast<uint8_t>(above - first_byte_.begin() - 1);
        decoder.consume(first_byte_[first], first_byte_[first + 1u] - first_byte_[first]);
        reader.skip(first);
        known.put(first, decoder);
        for (;;) {
            const int64_t left = bits_left(decoder.bits_used());
            if (left < 1 || !decoder.ok()) return bad(" does not end; no text encodes to it");
            if (decoder.decode_bit(end_probability(left))) break;
            if (decoded.bytes.size() == max_bytes) return too_long(max_bytes);
            const uint8_t byte = reader.decode(decoder);
            known.put(byte, decoder);
        }
    }
    return decoded;
}

namespace {

constexpr uint32_t kDocumentEnd = 1;  // of 2^16

}  // namespace

std::vector<uint8_t> encode_document(const context_mixer::ContextMixer& model, Bytes data) {
    arithmetic::RangeEncoder encoder;
    context_mixer::FrozenReader reader(model);
    for (const uint8_t byte : data) {
        encoder.encode_bit(false, kDocumentEnd);
        reader.encode(byte, encoder);
    }
    encoder.encode_bit(true, kDocumentEnd);
    return encoder.finish();
}

Result<DecodedBytes> decode_document(const context_mixer::ContextMixer& model, Bytes code, size_t max_bytes) {
    DecodedBytes decoded;
    KnownBytes known(code, decoded);
    arithmetic::RangeDecoder decoder(code);
    context_mixer::FrozenReader reader(model);
    while (!decoder.decode_bit(kDocumentEnd)) {
        if (!decoder.ok()) return malformed("the code does not end; it is cut off or damaged");
        if (decoded.bytes.size() == max_bytes) return too_long(max_bytes);
        const uint8_t byte = reader.decode(decoder);
        known.put(byte, decoder);
    }
    if (!decoder.ok()) return malformed("the code does not end; it is cut off or damaged");
    return decoded;
}

}  // namespace fastcompress::equal_info
