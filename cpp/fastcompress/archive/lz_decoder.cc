#include <memory>

#include "fastcompress/archive/extra_bits.h"
#include "fastcompress/archive/lz_codec.h"
#include "fastcompress/archive/lz_models.h"

namespace fastcompress::archive {
namespace {

using arithmetic::RangeDecoder;

inline unsigned get(RangeDecoder& stream, const Nibbles& nibbles) {
    const unsigned symbol = nibbles.find(stream.peek(kNibblePrecision));
    const Part part = nibbles.part(symbol);
    stream.consume(part.cumulative, part.frequency);
    return symbol;
}
inline unsigned get_symbol(RangeDecoder& stream, NibbleModel& model) {
    const unsigned symbol = get(stream, Nibbles(model));
    learn(model, symbol, kFieldRates);
    return symbol;
}
inline uint32_t get_number(RangeDecoder& stream, NumberModels& models, BitReader& bits) {
    const unsigned first = get_symbol(stream, models.first);
    if (first < 15) [[likely]]
        return first;
    const unsigned bucket = get_symbol(stream, models.bucket);
    return 15 + kEscapeBase[bucket] + bits.read(kEscapeBits[bucket]);
}

// Copies a match: each byte equals the one `distance` bytes before it. Up to `room` >= length bytes may be overwritten.
inline void copy_match(uint8_t* out, size_t distance, size_t length, size_t room) {
    const uint8_t* source = out - distance;
    if (distance >= 16 && room >= length + 16) [[likely]] {
        size_t i = 0;
        do {
            std::memcpy(out + i, source + i, 16);
            i += 16;
        } while (i < length);
        return;
    }
    size_t done = 0;
    while (done < length) {  // the copied bytes repeat, so each step can copy all of them
        const size_t step = std::min(distance + done, length - done);
        std::memcpy(out + done, source, step);
        done += step;
    }
}

struct Streams {
    std::array<Bytes, kNumStreams> codes;
    Bytes bits;
    bool models_low_bits;
};

// Reads the fields before the streams. nullopt if they are invalid.
std::optional<Streams> split(Bytes coded) {
    if (coded.empty() || coded[0] > 1) return std::nullopt;
    Streams streams;
    streams.models_low_bits = coded[0] == 1;
    size_t i = 1;
    std::array<uint64_t, kNumStreams> sizes{};
    for (uint64_t& size : sizes) {
        for (unsigned shift = 0;; shift += 7) {
            if (i == coded.size() || shift > 28) return std::nullopt;
            const uint8_t byte = coded[i++];
            size |= uint64_t{byte & 0x7fu} << shift;
            if (byte == 0 && shift > 0) return std::nullopt;  // a size with more groups than it needs
            if (byte < 0x80) break;
        }
    }
    Bytes rest = coded.subspan(i);
    for (size_t k = 0; k < kNumStreams; ++k) {
        if (sizes[k] > rest.size()) return std::nullopt;
        streams.codes[k] = rest.first(sizes[k]);
        rest = rest.subspan(sizes[k]);
    }
    streams.bits = rest;
    return streams;
}

class SequenceDecoder {
  public:
    SequenceDecoder(const Streams& streams, size_t block_bytes)
        : commands_(streams.codes[kCommands]),
          distances_(streams.codes[kDistances]),
          upper_(streams.codes[kUpper]),
          lower_(streams.codes[kLower]),
          bits_(streams.bits),
          models_low_bits_(streams.models_low_bits),
          literals_(block_bytes) {}

    // Returns false if a match begins before the block, or literals or a match end after it.
    bool decode(std::span<uint8_t> block);
    bool ok() const { return commands_.ok() && distances_.ok() && upper_.ok() && lower_.ok() && bits_.ok(); }
    // Whether the streams are, to the last bit, those that an encoder writes for the decoded block.
    bool is_finished(const Streams& streams) const {
        return commands_.is_finished_by(streams.codes[kCommands]) &&
               distances_.is_finished_by(streams.codes[kDistances]) && upper_.is_finished_by(streams.codes[kUpper]) &&
               lower_.is_finished_by(streams.codes[kLower]) && bits_.is_finished();
    }

  private:
    uint8_t literal(uint32_t previous, int expected) {
        const auto context = literals_.context(previous, expected);
        const HalfByte upper = literals_.upper(context);
        const unsigned high = get(upper_, upper.mixed());
        const HalfByte lower = literals_.lower(context, high);
        upper.learn(high);
        const unsigned low = get(lower_, lower.mixed());
        lower.learn(low);
        return static_cast<uint8_t>(high << 4 | low);
    }
    uint8_t* literals(uint8_t* out, size_t position, uint32_t count, bool after_match);
    uint32_t new_distance(unsigned c) {
        const uint32_t base = kClassBase[c] + (get_symbol(distances_, fields_.slot[c]) << (2 * c));
        if (!models_low_bits_ || c < 2) return base + bits_.read(2 * c);
        const unsigned low = get_symbol(distances_, fields_.low[c]);
        return base + (bits_.read(2 * c - 4) << 4) + low;
    }

    RangeDecoder commands_;
    RangeDecoder distances_;
    RangeDecoder upper_;
    RangeDecoder lower_;
    BitReader bits_;
    bool models_low_bits_;
    RepeatOffsets repeat_offsets_;
    FieldContext context_;
    FieldModels fields_;
    LiteralModels literals_;
};

uint8_t* SequenceDecoder::literals(uint8_t* out, size_t position, uint32_t count, bool after_match) {
    uint32_t previous = 0;
    for (size_t i = 0; i < 3 && i < position; ++i) previous |= uint32_t{out[-1 - static_cast<ptrdiff_t>(i)]} << (8 * i);
    int expected = after_match ? out[-static_cast<ptrdiff_t>(repeat_offsets_.values[0])] : -1;
    for (uint8_t* const end = out + count; out != end; ++out) {
        *out = literal(previous, expected);
        previous = previous << 8 | *out;
        expected = -1;
    }
    return out;
}

bool SequenceDecoder::decode(std::span<uint8_t> block) {
    uint8_t* const begin = block.data();
    uint8_t* const end = begin + block.size();
    uint8_t* out = begin;
    bool after_match = false;
    for (;;) {
        const uint32_t run = get_number(commands_, fields_.run[context_.of_run()], bits_);
        if (run > static_cast<size_t>(end - out)) return false;
        if (run > 0) out = literals(out, static_cast<size_t>(out - begin), run, after_match);
        if (out == end) return true;

        const unsigned kind = get_symbol(distances_, fields_.kind[context_.of_kind(run)]);
        const uint32_t length = kMinLength + get_number(commands_, fields_.length[kind], bits_);
        uint32_t distance;
        if (kind < kNumRepeatOffsets) {
            distance = repeat_offsets_.values[kind];
            repeat_offsets_.use(kind, distance);
        } else {
            distance = new_distance(kind - kNumRepeatOffsets);
            repeat_offsets_.use(kNumRepeatOffsets, distance);
        }
        const auto room = static_cast<size_t>(end - out);
        if (distance > static_cast<size_t>(out - begin) || length > room) return false;
        copy_match(out, distance, length, room);
        out += length;
        context_ = {run, length, kind};
        after_match = true;
    }
}

}  // namespace

Status lz_decode(Bytes coded, std::span<uint8_t> out) {
    const std::optional<Streams> streams = split(coded);
    if (!streams) return malformed("the sizes of its streams do not fit");
    const auto decoder = std::make_unique<SequenceDecoder>(*streams, out.size());
    if (!decoder->decode(out)) return malformed("a match or run leaves the block");
    if (!decoder->ok()) return malformed("its streams end too early");
    if (!decoder->is_finished(*streams)) return malformed("bytes follow its streams, or their padding is not zero");
    return {};
}

}  // namespace fastcompress::archive
