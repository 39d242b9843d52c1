// The adaptive models of the method "lz" and their selection, shared by encoder and decoder. FORMAT.md specifies both.
#pragma once

#include <algorithm>

#include "fastcompress/archive/lz_fields.h"
#include "fastcompress/archive/nibble_model.h"
#include "fastcompress/common/huge_array.h"

namespace fastcompress::archive {

// The streams of a block: commands, distances, and the upper and lower halves of literals. Extra bits follow them. Each
// stream is a code of its own, so that a processor decodes symbols of several streams at the same time.
enum Stream : size_t { kCommands, kDistances, kUpper, kLower, kNumStreams };

inline constexpr Rates kFieldRates = Rates::up_to(7);
inline constexpr Rates kByteRates = Rates::up_to(5);
inline constexpr Rates kContextRates = Rates::up_to(5);

// The weight of a model of a rarer context in a mix with models of more frequent ones, by the number of symbols it has
// seen, in units of 2^-16.
inline constexpr std::array<uint16_t, 256> kTrust = [] {
    std::array<uint16_t, 256> trust{};
    for (unsigned seen = 1; seen < 256; ++seen) {
        trust[seen] = seen == 1 ? 10000 : seen == 2 ? 18000 : seen < 9 ? 28000 : seen < 40 ? 41000 : 49152;
    }
    return trust;
}();

// Three models of half a byte, in three contexts. They are mixed in this order.
struct HalfByte {
    NibbleModel* one;
    NibbleModel* two;
    NibbleModel* three;

    Nibbles mixed() const {
        return Nibbles(*one).towards(*two, kTrust[two->num_seen()]).towards(*three, kTrust[three->num_seen()]);
    }
    void learn(unsigned symbol) const {
        archive::learn(*one, symbol, kByteRates);
        archive::learn(*two, symbol, kContextRates);
        archive::learn(*three, symbol, kContextRates);
    }
};

// The models of literals. Their contexts are the last byte; the last two bytes; and the last three bytes or, for the
// first literal after a match, the byte that would have continued the match. Contexts of two and three bytes are
// hashed, so some share a model. A small block has fewer models, which take less time to initialize.
class LiteralModels {
  public:
    explicit LiteralModels(size_t block_bytes) : bits_(block_bytes), models_(bits_.num_models()), one_(&models_[0]) {
        std::fill(one_, one_ + models_.size(), NibbleModel::uniform());
    }

    struct Context {
        NibbleModel* one;
        NibbleModel* expected;
        uint32_t two;
        uint32_t three;
    };
    // Returns the context of a literal. `previous` are the last three bytes, the very last one lowest; `expected` is
    // the byte that would have continued the match before, or -1.
    Context context(uint32_t previous, int expected) {
        return {one_ + 17 * (previous & 0xff), expected < 0 ? nullptr : expected_ + 17 * static_cast<size_t>(expected),
                (previous & 0xffff) * kMultiplier, (previous & 0xffffff) * kMultiplierOfThree};
    }
    HalfByte upper(const Context& c) {
        return {c.one, two_ + (c.two >> (32 - bits_.two)),
                c.expected ? c.expected : three_ + (c.three >> (32 - bits_.three))};
    }
    HalfByte lower(const Context& c, unsigned upper) {
        const uint32_t add = upper * kMultiplierOfUpper;
        NibbleModel* const three = three_lower_ + ((c.three + add) * kMultiplier >> (32 - bits_.three_lower));
        return {c.one + 1 + upper, two_lower_ + ((c.two + add) * kMultiplier >> (32 - bits_.two_lower)),
                c.expected ? c.expected + 1 + upper : three};
    }

  private:
    static constexpr uint32_t kMultiplier = 0x9e3779b1u;
    static constexpr uint32_t kMultiplierOfThree = 0x85ebca6bu;
    static constexpr uint32_t kMultiplierOfUpper = 0x3c6ef372u;
    static constexpr size_t kNumOne =
        17 * 256;  // for each byte: one for the upper half, and one for the lower half per upper half

    // The numbers of models of hashed contexts, as binary logarithms.
    struct Bits {
        unsigned two, three, two_lower, three_lower;
        explicit Bits(size_t block_bytes) {
            const auto width = static_cast<unsigned>(std::bit_width(block_bytes));
            const unsigned less = width < 14 ? 6 : width < 20 ? 20 - width : 0;
            two = 12 - less;
            three = 14 - less;
            two_lower = 14 - less;
            three_lower = 16 - less;
        }
        size_t num_models() const {
            return 2 * kNumOne + (size_t{1} << two) + (size_t{1} << three) + (size_t{1} << two_lower) +
                   (size_t{1} << three_lower);
        }
    };

    Bits bits_;
    HugeArray<NibbleModel> models_;  // all models in one array, which is in huge pages, because they are read at random
    NibbleModel* one_;
    NibbleModel* expected_ = one_ + kNumOne;
    NibbleModel* two_ = expected_ + kNumOne;
    NibbleModel* three_ = two_ + (size_t{1} << bits_.two);
    NibbleModel* two_lower_ = three_ + (size_t{1} << bits_.three);
    NibbleModel* three_lower_ = two_lower_ + (size_t{1} << bits_.two_lower);
};

// The models of a number: one for its symbol, and one for the bucket that follows the symbol 15.
struct NumberModels {
    NibbleModel first;
    NibbleModel bucket;
};

// The models of everything except literals.
struct FieldModels {
    std::array<NumberModels, 16> run;
    std::array<NibbleModel, 16> kind;
    std::array<NumberModels, 16> length;        // by kind of source
    std::array<NibbleModel, kNumClasses> slot;  // by class of distance
    std::array<NibbleModel, kNumClasses> low;   // the last four bits of a distance

    FieldModels() {
        const NibbleModel uniform = NibbleModel::uniform();
        run.fill({uniform, uniform});
        kind.fill(uniform);
        length.fill({uniform, uniform});
        slot.fill(uniform);
        low.fill(uniform);
    }
};

// The context of fields: the sequence before.
struct FieldContext {
    uint32_t num_literals = 0;
    uint32_t length = kMinLength;
    unsigned kind = 0;

    unsigned of_run() const { return (std::min(length, 17u) - kMinLength) / 4 * 4 + std::min(num_literals, 3u); }
    unsigned of_kind(uint32_t literals_now) const { return std::min(literals_now, 3u) * 4 + kind / 4; }
};

}  // namespace fastcompress::archive
