// An encoder and a decoder as Python objects, with snapshots that can only be restored where they were taken. They are
// used through Guarded (guarded.h), so nothing here deals with threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "bind_arithmetic.h"
#include "fastcompress/arithmetic/range_coder.h"
#include "guarded.h"

namespace fastcompress::bindings {

using arithmetic::RangeDecoder;
using arithmetic::RangeEncoder;

// Returns a number that no other snapshot or coder of this process has.
inline uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

struct EncoderSnapshot {
    RangeEncoder::Snapshot state;
    uint64_t serial;
};

struct CodeEncoder {
    RangeEncoder encoder;
    KeptQuantizer quantizer;
    std::vector<uint64_t> serials;  // serials of the snapshots that the present code extends, ascending

    EncoderSnapshot snapshot() {
        serials.push_back(next_serial());
        return {encoder.snapshot(), serials.back()};
    }
    void restore(const EncoderSnapshot& snapshot) {
        const auto found = std::ranges::lower_bound(serials, snapshot.serial);
        if (found == serials.end() || *found != snapshot.serial || !encoder.restore(snapshot.state)) {
            raise(invalid_argument(
                "the snapshot belongs to another code, to a part that was undone, or to bytes that were taken"));
        }
        serials.erase(found + 1, serials.end());
    }
    std::vector<uint8_t> finish() {
        std::vector<uint8_t> code = encoder.finish();
        serials.clear();
        return code;
    }
};

struct DecoderSnapshot {
    RangeDecoder state;
    uint64_t serial;
};

// A decoder and the code that it reads, which may arrive in pieces.
class CodeDecoder {
  public:
    KeptQuantizer quantizer;

    // Appends the next piece of the code. `is_last` if no piece follows.
    void append(const py::bytes& piece, bool is_last) {
        if (is_last_) raise(invalid_argument("the code has ended; nothing can be appended"));
        const Bytes unread = has_begun_ ? decoder_.unread() : Bytes(code_);
        const size_t num_before = has_begun_ ? decoder_.num_before_unread() : 0;
        std::vector<uint8_t> rest(unread.data() - num_before, unread.data() + unread.size());
        const Bytes more = bytes_of(piece);
        rest.insert(rest.end(), more.begin(), more.end());
        code_ = std::move(rest);
        num_bytes_ += more.size();
        is_last_ = is_last;
        if (!has_begun_ && (is_last || code_.size() >= 8)) {
            decoder_ = RangeDecoder(code_);
            has_begun_ = true;
        } else if (has_begun_) {
            decoder_.move_to(code_, num_before);
        }
    }
    // The number of symbols that can be decoded before more of the code is needed.
    size_t num_ready() const {
        if (is_last_) return std::numeric_limits<size_t>::max();
        return has_begun_ ? decoder_.unread().size() / 4 : 0;
    }
    RangeDecoder& ready(size_t num_symbols) {
        if (num_symbols > num_ready()) raise(invalid_data("the code needs more bytes first; append them"));
        return decoder_;
    }
    // The number of bytes in the code of the symbols decoded so far.
    uint64_t num_bytes_read() const { return has_begun_ ? std::min(decoder_.code_bytes(), num_bytes_) : 0; }
    // Raises FormatError if the code is damaged, or if bytes follow it and are not allowed.
    void finish(bool allow_trailing) {
        if (!is_last_) raise(invalid_argument("the last piece of the code is missing; append it first"));
        if (!decoder_.ok()) raise_damaged();
        const uint64_t num_trailing = num_bytes_ - num_bytes_read();
        if (num_trailing == 0 || allow_trailing) return;
        raise(malformed(std::to_string(num_trailing) + " bytes follow the code, which ends after " +
                        std::to_string(num_bytes_read()) +
                        " bytes; pass allow_trailing=True if they are not part of it"));
    }
    DecoderSnapshot snapshot() const {
        if (!is_last_)
            raise(invalid_argument("the last piece of the code is missing; a snapshot needs the whole code"));
        return {decoder_, serial_};
    }
    void restore(const DecoderSnapshot& snapshot) {
        if (snapshot.serial != serial_) raise(invalid_argument("the snapshot belongs to another decoder"));
        decoder_ = snapshot.state;
    }
    [[noreturn]] static void raise_damaged() {
        raise(malformed(
            "this is not the code of these symbols; it is truncated, damaged, or was encoded with other tables"));
    }

  private:
    const uint64_t serial_ = next_serial();
    std::vector<uint8_t> code_;
    uint64_t num_bytes_ = 0;  // bytes appended in all
    bool is_last_ = false;
    bool has_begun_ = false;
    RangeDecoder decoder_{Bytes()};
};

template <>
inline constexpr const char* kPythonName<CodeEncoder> = "Encoder";
template <>
inline constexpr const char* kPythonName<CodeDecoder> = "Decoder";

}  // namespace fastcompress::bindings
