#include "fastcompress/lz77/reconstruct.h"

#include <cstring>

namespace fastcompress::lz77 {
namespace {

// The bytes of a match, first to last. Where source and target are less than 16 apart, so many bytes cannot be copied
// at once; but what has been copied repeats itself, so the distance can be doubled until they are.
void copy_match(uint8_t* out, size_t distance, size_t length) {
    const uint8_t* source = out - distance;
    if (distance >= length) {
        std::memcpy(out, source, length);
        return;
    }
    size_t done = 0;
    while (done < length) {
        const size_t step = std::min(distance + done, length - done);
        std::memcpy(out + done, source, step);
        done += step;
    }
}

}  // namespace

Result<size_t> reconstructed_bytes(std::span<const uint8_t> kinds, std::span<const uint32_t> values,
                                   std::span<const uint32_t> lengths, size_t max_bytes) {
    size_t size = 0;
    for (size_t i = 0; i < kinds.size(); ++i) {
        const auto bad = [&](const std::string& what) { return malformed("token " + std::to_string(i) + " " + what); };
        if (kinds[i] == static_cast<uint8_t>(TokenKind::kLiteral)) {
            if (values[i] > 255) return bad("is the literal " + std::to_string(values[i]) + ", which is no byte");
            if (lengths[i] != 1) return bad("is a literal of length " + std::to_string(lengths[i]) + ", not 1");
        } else if (kinds[i] == static_cast<uint8_t>(TokenKind::kMatch)) {
            if (lengths[i] == 0) return bad("is a match of length 0");
            if (values[i] == 0 || values[i] > size) {
                return bad("is a match of distance " + std::to_string(values[i]) + " after " + std::to_string(size) +
                           " bytes");
            }
        } else {
            return bad("is of kind " + std::to_string(kinds[i]) + "; there are 0 (literal) and 1 (match)");
        }
        size += lengths[i];
        if (size > max_bytes) return bad("ends past the " + std::to_string(max_bytes) + " bytes that are allowed");
    }
    return size;
}

void reconstruct(std::span<const uint8_t> kinds, std::span<const uint32_t> values, std::span<const uint32_t> lengths,
                 uint8_t* out) {
    for (size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] == static_cast<uint8_t>(TokenKind::kLiteral)) {
            *out++ = static_cast<uint8_t>(values[i]);
        } else {
            copy_match(out, values[i], lengths[i]);
            out += lengths[i];
        }
    }
}

}  // namespace fastcompress::lz77
