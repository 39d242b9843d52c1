// Byte spans, and little-endian integers written to and read from them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fastcompress {

// Positions, hashes and packed fields rely on a size_t of 64 bits.
static_assert(sizeof(size_t) == 8, "fastcompress needs a 64-bit system");

using Bytes = std::span<const uint8_t>;

inline Bytes as_bytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_chars(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Appends little-endian integers of fixed width and length-prefixed strings, the same bytes on every machine.
class ByteWriter {
  public:
    void u8(uint8_t value) { out_.push_back(value); }
    void u32(uint32_t value) {
        for (int shift = 0; shift < 32; shift += 8) out_.push_back(static_cast<uint8_t>(value >> shift));
    }
    void raw(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
    void string(Bytes bytes) {
        u32(static_cast<uint32_t>(bytes.size()));
        raw(bytes);
    }
    const std::vector<uint8_t>& bytes() const { return out_; }
    std::vector<uint8_t> take() { return std::move(out_); }

  private:
    std::vector<uint8_t> out_;
};

// Reads what ByteWriter wrote. After a read past the end, every read returns zero or an empty span and ok() is false,
// so a parser needs one check per record instead of one per field. Strings are views into the input, so a wrong length
// cannot cause an allocation.
class ByteReader {
  public:
    explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

    uint8_t u8() {
        const Bytes field = raw(1);
        return field.empty() ? uint8_t{0} : field[0];
    }
    uint32_t u32() {
        const Bytes field = raw(4);
        if (field.empty()) return 0;
        return uint32_t{field[0]} | uint32_t{field[1]} << 8 | uint32_t{field[2]} << 16 | uint32_t{field[3]} << 24;
    }
    Bytes string() { return raw(u32()); }
    Bytes raw(size_t count) {
        if (!ok_ || count > remaining()) {
            ok_ = false;
            return {};
        }
        const Bytes field = bytes_.subspan(position_, count);
        position_ += count;
        return field;
    }
    bool ok() const { return ok_; }
    size_t remaining() const { return bytes_.size() - position_; }

  private:
    Bytes bytes_;
    size_t position_ = 0;
    bool ok_ = true;
};

}  // namespace fastcompress
