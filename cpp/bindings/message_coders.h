// An encoder and a decoder as Python objects: one thread at a time, and snapshots that know what they are of.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "bind_arithmetic.h"
#include "fastcompress/arithmetic/range_coder.h"

namespace fastcompress::bindings {

using arithmetic::RangeDecoder;
using arithmetic::RangeEncoder;

// Drawn once each in a process, so that snapshots and coders never pass for others.
inline uint64_t next_serial() {
    static uint64_t last = 0;  // changed with the GIL held
    return ++last;
}

// While a call codes without the GIL, others on the same object are refused: they would find it half changed.
class Turn {
  public:
    explicit Turn(bool& is_taken) : is_taken_(is_taken) {
        if (is_taken) raise(invalid_argument("another thread is using this coder; give each thread its own"));
        is_taken = true;
    }
    ~Turn() { is_taken_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    bool& is_taken_;
};

struct EncoderSnapshot {
    RangeEncoder::Snapshot state;
    uint64_t serial;
};

struct MessageEncoder {
    RangeEncoder encoder;
    KeptQuantizer quantizer;
    std::vector<uint64_t> serials;  // of the snapshots that are of what the message is now, in ascending order
    bool is_taken = false;

    uint64_t bits_if_closed() {
        const Turn turn(is_taken);
        return encoder.num_bits_if_finished();
    }
    EncoderSnapshot snapshot() {
        const Turn turn(is_taken);
        serials.push_back(next_serial());
        return {encoder.snapshot(), serials.back()};
    }
    void restore(const EncoderSnapshot& snapshot) {
        const Turn turn(is_taken);
        const auto found = std::ranges::lower_bound(serials, snapshot.serial);
        if (found == serials.end() || *found != snapshot.serial || !encoder.restore(snapshot.state)) {
            raise(invalid_argument(
                "the snapshot is of another message, of a part that was undone, or of bytes that were taken"));
        }
        serials.erase(found + 1, serials.end());
    }
    std::vector<uint8_t> finish() {
        const Turn turn(is_taken);
        serials.clear();
        return encoder.finish();
    }
    std::vector<uint8_t> take() {
        const Turn turn(is_taken);
        return encoder.take_settled();
    }
};

struct DecoderSnapshot {
    RangeDecoder state;
    uint64_t serial;
};

// A decoder and the message it reads, which may come piece by piece.
class MessageDecoder {
  public:
    KeptQuantizer quantizer;
    bool is_taken = false;

    // What comes next of the message; `is_last`: nothing will come after it.
    void append(const py::bytes& piece, bool is_last) {
        const Turn turn(is_taken);
        if (is_last_) raise(invalid_argument("the message has ended; nothing can be appended"));
        const Bytes unread = has_begun_ ? decoder_.unread() : Bytes(message_);
        std::vector<uint8_t> rest(unread.begin(), unread.end());
        const Bytes more = bytes_of(piece);
        rest.insert(rest.end(), more.begin(), more.end());
        message_ = std::move(rest);
        is_last_ = is_last;
        if (!has_begun_ && (is_last || message_.size() >= 8)) {
            decoder_ = RangeDecoder(message_);
            has_begun_ = true;
        } else if (has_begun_) {
            decoder_.set_unread(message_);
        }
    }
    // How many symbols can be decoded before more of the message is needed.
    size_t num_ready() {
        const Turn turn(is_taken);
        return count_ready();
    }
    // For a caller whose turn it is.
    RangeDecoder& ready(size_t num_symbols) {
        if (num_symbols > count_ready()) raise(invalid_data("the message needs more bytes first; append them"));
        return decoder_;
    }
    DecoderSnapshot snapshot() {
        const Turn turn(is_taken);
        if (!is_last_) {
            raise(invalid_argument("a message that still comes in pieces keeps no snapshots; give it whole"));
        }
        return {decoder_, serial_};
    }
    void restore(const DecoderSnapshot& snapshot) {
        const Turn turn(is_taken);
        if (snapshot.serial != serial_) raise(invalid_argument("the snapshot is of another decoder"));
        decoder_ = snapshot.state;
    }

  private:
    size_t count_ready() const {
        if (is_last_) return std::numeric_limits<size_t>::max();
        return has_begun_ ? decoder_.unread().size() / 4 : 0;
    }

    const uint64_t serial_ = next_serial();
    std::vector<uint8_t> message_;
    bool is_last_ = false;
    bool has_begun_ = false;
    RangeDecoder decoder_{Bytes()};
};

}  // namespace fastcompress::bindings
