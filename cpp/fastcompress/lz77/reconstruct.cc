#include "fastcompress/lz77/reconstruct.h"

#include <cstring>

#include "fastcompress/common/read_once.h"

namespace fastcompress::lz77 {
namespace {

constexpr auto kLiteral = static_cast<uint8_t>(TokenKind::kLiteral);
constexpr auto kMatch = static_cast<uint8_t>(TokenKind::kMatch);
constexpr size_t kWide = 16;  // the number of bytes copied at once

// Copies the bytes of a match. If source and target overlap, the copied bytes repeat with the period of the distance,
// so each step can copy as many bytes as lie between the source and the end of what has been copied.
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

Status check_token(uint32_t kind, uint32_t value, uint32_t length, size_t index) {
    const auto bad = [&](const std::string& what) { return malformed("token " + std::to_string(index) + " " + what); };
    if (kind == static_cast<uint8_t>(TokenKind::kLiteral)) {
        if (value > 255) return bad("is a literal of value " + std::to_string(value) + "; a byte is 0 to 255");
        if (length != 1) return bad("is a literal of length " + std::to_string(length) + "; it must be 1");
    } else if (kind == static_cast<uint8_t>(TokenKind::kMatch)) {
        if (length == 0) return bad("is a match of length 0; it must be at least 1");
        if (value == 0) return bad("is a match of distance 0; it must be at least 1");
    } else {
        return bad("is of kind " + std::to_string(kind) + "; it must be 0 (literal) or 1 (match)");
    }
    return {};
}

Result<size_t> reconstructed_bytes(std::span<const uint8_t> kinds, std::span<const uint32_t> values,
                                   std::span<const uint32_t> lengths, size_t max_bytes) {
    size_t size = 0;
    for (size_t i = 0; i < kinds.size(); ++i) {
        const uint8_t kind = read_once(kinds[i]);
        const uint32_t value = read_once(values[i]);
        const uint32_t length = read_once(lengths[i]);
        // There is no branch on the kind, which is unpredictable. A distance of 0 wraps around to a value above any
        // size.
        const bool is_bad_literal = (value > 255) | (length != 1);
        const bool is_bad_match = (uint64_t{value} - 1 >= size) | (length == 0) | (kind != kMatch);
        if (kind == kLiteral ? is_bad_literal : is_bad_match) [[unlikely]] {
            if (Status status = check_token(kind, value, length, i); !status.ok()) return status;
            return malformed("token " + std::to_string(i) + " is a match of distance " + std::to_string(value) +
                             " after " + std::to_string(size) + " bytes; it must not reach before the beginning");
        }
        size += length;
        if (size > max_bytes) {
            return malformed("token " + std::to_string(i) + " ends past the " + std::to_string(max_bytes) +
                             " bytes that are allowed");
        }
    }
    return size;
}

bool reconstruct(std::span<const uint8_t> kinds, std::span<const uint32_t> values, std::span<const uint32_t> lengths,
                 std::span<uint8_t> out) {
    size_t size = 0;
    for (size_t i = 0; i < kinds.size(); ++i) {
        const uint32_t value = read_once(values[i]);
        const size_t room = out.size() - size;
        uint8_t* const next = out.data() + size;
        if (read_once(kinds[i]) == kLiteral) {
            if (room == 0) [[unlikely]]
                return false;
            *next = static_cast<uint8_t>(value);
            ++size;
            continue;
        }
        const uint32_t length = read_once(lengths[i]);
        if (uint64_t{value} - 1 >= size || length > room) [[unlikely]]
            return false;
        if (length <= kWide && value >= kWide && room >= kWide) {
            std::memcpy(next, next - value, kWide);  // the next tokens overwrite the excess bytes
        } else {
            copy_match(next, value, length);
        }
        size += length;
    }
    return size == out.size();
}

}  // namespace fastcompress::lz77
