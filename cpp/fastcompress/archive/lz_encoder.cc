#include <cassert>
#include <memory>

#include "fastcompress/archive/extra_bits.h"
#include "fastcompress/archive/lz_codec.h"
#include "fastcompress/archive/lz_models.h"
#include "fastcompress/archive/lz_parse.h"
#include "fastcompress/archive/lz_prices.h"

namespace fastcompress::archive {
namespace {

class SequenceEncoder {
  public:
    SequenceEncoder(Bytes block, bool models_low_bits)
        : block_(block), models_low_bits_(models_low_bits), literals_(block.size()) {}

    void encode(const Sequence& sequence) {
        number(kCommands, fields_.run[context_.of_run()], sequence.num_literals);
        for (uint32_t i = 0; i < sequence.num_literals; ++i) literal(i == 0 && after_match_);
        if (sequence.length == 0) return;
        const unsigned index = repeat_offsets_.find(sequence.distance);
        const unsigned c = distance_class(sequence.distance);
        const unsigned kind = index < kNumRepeatOffsets ? index : kNumRepeatOffsets + c;
        symbol(kDistances, fields_.kind[context_.of_kind(sequence.num_literals)], kind);
        number(kCommands, fields_.length[kind], sequence.length - kMinLength);
        if (index == kNumRepeatOffsets) new_distance(sequence.distance, c);
        repeat_offsets_.use(index, sequence.distance);
        context_ = {sequence.num_literals, sequence.length, kind};
        after_match_ = true;
        position_ += sequence.length;
    }

    std::vector<uint8_t> finish() {
        std::vector<uint8_t> out = {static_cast<uint8_t>(models_low_bits_)};
        std::array<std::vector<uint8_t>, kNumStreams> codes;
        for (size_t i = 0; i < kNumStreams; ++i) {
            codes[i] = streams_[i].finish();
            auto size = static_cast<uint32_t>(codes[i].size());
            for (; size >= 0x80; size >>= 7) out.push_back(static_cast<uint8_t>(size | 0x80));
            out.push_back(static_cast<uint8_t>(size));
        }
        for (const auto& code : codes) out.insert(out.end(), code.begin(), code.end());
        const std::vector<uint8_t> bits = bits_.take();
        out.insert(out.end(), bits.begin(), bits.end());
        return out;
    }

  private:
    void put(Stream stream, const Nibbles& nibbles, unsigned symbol) {
        const Part part = nibbles.part(symbol);
        streams_[stream].encode(part.cumulative, part.frequency, kNibblePrecision);
    }
    void symbol(Stream stream, NibbleModel& model, unsigned symbol) {
        put(stream, Nibbles(model), symbol);
        learn(model, symbol, kFieldRates);
    }
    void number(Stream stream, NumberModels& models, uint32_t number) {
        symbol(stream, models.first, std::min(number, 15u));
        if (number < 15) return;
        const unsigned bucket = escape_bucket(number - 15);
        symbol(stream, models.bucket, bucket);
        bits_.write(number - 15 - kEscapeBase[bucket], kEscapeBits[bucket]);
    }
    void new_distance(uint32_t distance, unsigned c) {
        const uint32_t offset = distance - kClassBase[c];
        symbol(kDistances, fields_.slot[c], offset >> (2 * c));
        const uint32_t rest = offset & ((uint32_t{1} << (2 * c)) - 1);
        if (models_low_bits_ && c >= 2) {
            symbol(kDistances, fields_.low[c], rest & 15);
            bits_.write(rest >> 4, 2 * c - 4);
        } else {
            bits_.write(rest, 2 * c);
        }
    }
    void literal(bool expects) {
        const uint8_t byte = block_[position_];
        uint32_t previous = 0;
        for (size_t i = 0; i < 3 && i < position_; ++i) previous |= uint32_t{block_[position_ - 1 - i]} << (8 * i);
        const int expected = expects ? block_[position_ - repeat_offsets_.values[0]] : -1;
        const auto context = literals_.context(previous, expected);
        const HalfByte upper = literals_.upper(context);
        put(kUpper, upper.mixed(), byte >> 4);
        upper.learn(byte >> 4);
        const HalfByte lower = literals_.lower(context, byte >> 4);
        put(kLower, lower.mixed(), byte & 15);
        lower.learn(byte & 15);
        ++position_;
    }

    Bytes block_;
    bool models_low_bits_;
    size_t position_ = 0;
    bool after_match_ = false;
    RepeatOffsets repeat_offsets_;
    FieldContext context_;
    FieldModels fields_;
    LiteralModels literals_;
    std::array<arithmetic::RangeEncoder, kNumStreams> streams_;
    BitWriter bits_;
};

// The search effort of a level. After the first parse, the block is parsed `passes` more times, each time with prices
// from the parse before; only the last pass uses `depth` and `nice` in full. A literal takes longer to decode than the
// bytes of a match, so `literal_tax` is added to its price.
struct Effort {
    uint32_t min_length;  // smallest length of a match in the first parse
    uint32_t lazy_depth;
    unsigned passes;
    uint32_t depth;
    uint32_t nice;
    uint32_t literal_tax;
};
constexpr std::array<Effort, kMaxLzLevel> kEfforts = {{
    {6, 4, 0, 0, 0, 0},
    {6, 16, 0, 0, 0, 0},
    {6, 64, 0, 0, 0, 0},
    {6, 16, 1, 8, 48, kBit / 2},
    {6, 16, 2, 12, 64, kBit / 2},
    {6, 16, 2, 24, 64, kBit / 4},
    {8, 16, 2, 32, 96, kBit / 8},
    {10, 16, 2, 48, 128, 0},
    {12, 16, 3, 96, 160, 0},
}};
constexpr uint32_t kFirstDepth = 8;
constexpr uint32_t kFirstNice = 48;

}  // namespace

std::vector<uint8_t> lz_encode(Bytes block, unsigned level) {
    assert(level >= 1 && level <= kMaxLzLevel);
    const Effort& effort = kEfforts[level - 1];
    std::vector<Sequence> sequences = parse_lazily(block, effort.min_length, effort.lazy_depth);
    for (unsigned left = effort.passes; left > 0; --left) {
        const Prices prices(block, sequences, effort.literal_tax);
        sequences =
            parse_by_price(block, prices, left == 1 ? effort.depth : kFirstDepth, left == 1 ? effort.nice : kFirstNice);
    }
    return lz_encode_sequences(block, sequences, pays_to_model_low_bits(sequences));
}

std::vector<uint8_t> lz_encode_sequences(Bytes block, const std::vector<Sequence>& sequences, bool models_low_bits) {
    const auto encoder = std::make_unique<SequenceEncoder>(block, models_low_bits);
    for (const Sequence& sequence : sequences) encoder->encode(sequence);
    return encoder->finish();
}

}  // namespace fastcompress::archive
