#include "fastcompress/context_mixer/model_coding.h"

#include <algorithm>
#include <array>

#include "fastcompress/context_mixer/model_state.h"

namespace fastcompress::context_mixer {
namespace {

template <bool kLearns>
FASTCOMPRESS_INLINED void encode_loop(ByteModel& model, DocumentState& document, Bytes data,
                                      arithmetic::RangeEncoder& encoder) {
    const auto code = [&](size_t position, int shift, uint32_t p1) {
        const bool bit = (data[position] >> shift & 1) != 0;
        encoder.encode_bit(bit, p1);
        return bit;
    };
    code_bytes<kLearns>(model, document, data.size(), code, [](size_t, uint8_t) { return true; });
}

template <bool kLearns>
FASTCOMPRESS_INLINED void decode_loop(ByteModel& model, DocumentState& document, arithmetic::RangeDecoder& decoder,
                                      std::span<uint8_t> out) {
    const auto code = [&](size_t, int, uint32_t p1) { return decoder.decode_bit(p1); };
    code_bytes<kLearns>(model, document, out.size(), code, [&](size_t position, uint8_t byte) {
        out[position] = byte;
        return position % kBytesBetweenChecks != 0 || decoder.ok();
    });
}

FASTCOMPRESS_INLINED void learn_loop(ByteModel& model, Bytes data) {
    const auto code = [&](size_t position, int shift, uint32_t) { return (data[position] >> shift & 1) != 0; };
    code_bytes<true>(model, model.document, data.size(), code, [](size_t, uint8_t) { return true; });
}

#if defined(FASTCOMPRESS_AVX2)
FASTCOMPRESS_AVX2 void encode_avx2(ByteModel& model, DocumentState& document, Bytes data,
                                   arithmetic::RangeEncoder& encoder) {
    model.is_frozen ? encode_loop<false>(model, document, data, encoder)
                    : encode_loop<true>(model, document, data, encoder);
}
FASTCOMPRESS_AVX2 void decode_avx2(ByteModel& model, DocumentState& document, arithmetic::RangeDecoder& decoder,
                                   std::span<uint8_t> out) {
    model.is_frozen ? decode_loop<false>(model, document, decoder, out)
                    : decode_loop<true>(model, document, decoder, out);
}
FASTCOMPRESS_AVX2 void learn_avx2(ByteModel& model, Bytes data) {
    learn_loop(model, data);
}
#endif

void encode_scalar(ByteModel& model, DocumentState& document, Bytes data, arithmetic::RangeEncoder& encoder) {
    model.is_frozen ? encode_loop<false>(model, document, data, encoder)
                    : encode_loop<true>(model, document, data, encoder);
}
void decode_scalar(ByteModel& model, DocumentState& document, arithmetic::RangeDecoder& decoder,
                   std::span<uint8_t> out) {
    model.is_frozen ? decode_loop<false>(model, document, decoder, out)
                    : decode_loop<true>(model, document, decoder, out);
}
void learn_scalar(ByteModel& model, Bytes data) {
    learn_loop(model, data);
}

}  // namespace

void encode_bytes(ByteModel& model, DocumentState& document, Bytes data, arithmetic::RangeEncoder& encoder) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx2()) return encode_avx2(model, document, data, encoder);
#endif
    encode_scalar(model, document, data, encoder);
}

Status decode_bytes(ByteModel& model, DocumentState& document, arithmetic::RangeDecoder& decoder,
                    std::span<uint8_t> out) {
#if defined(FASTCOMPRESS_AVX2)
    has_avx2() ? decode_avx2(model, document, decoder, out) : decode_scalar(model, document, decoder, out);
#else
    decode_scalar(model, document, decoder, out);
#endif
    if (!decoder.ok()) return malformed("not a code of a context mixer: it ends too early or is damaged");
    return {};
}

void learn_bytes(ByteModel& model, Bytes data) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx2()) return learn_avx2(model, data);
#endif
    learn_scalar(model, data);
}

DocumentState state_after(const ByteModel& model, Bytes context) {
    DocumentState document;
    for (const uint8_t byte : context) {
        document.reset_if_due(model.params.reset_interval);
        document.append(byte);
    }
    return document;
}

FASTCOMPRESS_INLINED void next_byte_loop(const ByteModel& model, const Cursor& cursor,
                                         std::span<uint32_t, 512> totals) {
    uint64_t keys[kNumContexts];
    cursor.context_keys({}, keys);
    SlotPointers slots[17];  // of the first nibble, and of the second after each first one
    for (uint32_t k = 0; k < 17; ++k) {
        for (int i = 0; i < kNumContexts; ++i) {
            slots[k][i] = model.histories.find(HistoryTable::hash(keys[i] + (k == 0 ? 1 : 15 + k)));
        }
    }
    for (uint32_t partial = 1; partial < 256; ++partial) {
        const auto depth = static_cast<uint32_t>(std::bit_width(partial)) - 1;
        const uint32_t below_root = depth % 4;
        const uint32_t root = depth < 4 ? 0 : (partial >> below_root) - 15;
        const uint32_t bits = partial & ((1u << below_root) - 1);
        const uint32_t node = bits + (1u << below_root) - 1;
        Prediction prediction;
        const uint32_t p1 = predict(model.learned(), slots[root], cursor.last, partial, node, {}, prediction);
        const uint32_t total = totals[partial];
        const uint32_t num_leaves = 128u >> depth;  // bytes on each side, one each at least
        const auto ones = static_cast<uint32_t>(uint64_t{total} * p1 >> 16);
        totals[2 * partial + 1] = std::clamp(ones, num_leaves, total - num_leaves);
        totals[2 * partial] = total - totals[2 * partial + 1];
    }
}

#if defined(FASTCOMPRESS_AVX2)
FASTCOMPRESS_AVX2 void next_byte_avx2(const ByteModel& model, const Cursor& cursor, std::span<uint32_t, 512> totals) {
    next_byte_loop(model, cursor, totals);
}
#endif

void next_byte(const ByteModel& model, const DocumentState& document, unsigned precision,
               std::span<uint32_t, 256> frequencies) {
    DocumentState next = document;
    next.reset_if_due(model.params.reset_interval);
    std::array<uint32_t, 512> totals;  // of all bytes that begin with these bits, by their `partial`
    totals[1] = uint32_t{1} << precision;
#if defined(FASTCOMPRESS_AVX2)
    has_avx2() ? next_byte_avx2(model, next.cursor, totals) : next_byte_loop(model, next.cursor, totals);
#else
    next_byte_loop(model, next.cursor, totals);
#endif
    std::copy(totals.begin() + 256, totals.end(), frequencies.begin());
}

}  // namespace fastcompress::context_mixer
