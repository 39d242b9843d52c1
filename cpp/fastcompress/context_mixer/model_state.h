// The state of a context mixer, and the loop that codes bytes with it.
#pragma once

#include <optional>

#include "fastcompress/context_mixer/byte_model.h"
#include "fastcompress/context_mixer/context_mixer.h"
#include "fastcompress/context_mixer/record_model.h"

namespace fastcompress::context_mixer {

// The state of one document: a frozen model keeps one per document, an adaptive model has one.
struct DocumentState {
    Cursor cursor;
    uint32_t num_since_reset = 0;  // bytes since the context was last empty

    // Empties the context if reset_interval bytes have come since it was last empty; 0: never. Called before each byte.
    void reset_if_due(uint32_t reset_interval) {
        if (reset_interval > 0 && num_since_reset == reset_interval) *this = DocumentState();
    }
    void append(uint8_t byte) {
        cursor.append(byte);
        ++num_since_reset;
    }
};

class ByteModel {
  public:
    explicit ByteModel(const MixerParams& params);
    // Copies what was learned; the copy is at the start of a document, with an empty match model.
    ByteModel(const ByteModel& other);

    MixerParams params;
    bool is_frozen = false;
    HistoryTable histories;
    HugeArray<Learned> learned_memory;
    std::optional<MatchModel> match;
    RecordModel records;  // used only if `match` exists
    DocumentState document;

    Record record() const {
        const uint32_t length = match ? records.length() : 0;
        if (length == 0) return {};
        return {length, match->position() % length, match->before(length), match->before(length - 1),
                match->before(2 * length)};
    }
    Learned& learned() const { return learned_memory[0]; }
};

using SlotHashes = uint64_t[kNumContexts];

// Computes the hashes of the slots that a nibble needs, and prefetches them all. `partial` is 1, or 16 to 31 for the
// second nibble.
FASTCOMPRESS_INLINED void hash_slots(const HistoryTable& histories, const uint64_t (&keys)[kNumContexts],
                                     uint32_t partial, SlotHashes& hashes) {
    for (int i = 0; i < kNumContexts; ++i) {
        hashes[i] = HistoryTable::hash(keys[i] + partial);
        histories.prefetch_bucket(hashes[i]);
    }
}

// Prefetches the slots of both possible second nibbles before the last bit of the first is known: `partial` is 8 to 15.
FASTCOMPRESS_INLINED void prefetch_both(const HistoryTable& histories, const uint64_t (&keys)[kNumContexts],
                                        uint32_t partial) {
    for (int i = 0; i < kNumContexts; ++i) {
        histories.prefetch_bucket(HistoryTable::hash(keys[i] + 2 * partial));
        histories.prefetch_bucket(HistoryTable::hash(keys[i] + 2 * partial + 1));
    }
}

// Codes one nibble: `partial` before it is 1, or 16 to 31. code(p1) codes a bit that is one with probability p1, and
// returns it.
template <bool kLearns, class Code>
FASTCOMPRESS_INLINED uint32_t code_nibble(ByteModel& model, const DocumentState& document,
                                          const uint64_t (&keys)[kNumContexts], const SlotHashes& hashes,
                                          uint32_t partial, const Code& code) {
    uint8_t* writable[kNumContexts];
    SlotPointers slots;
    for (int i = 0; i < kNumContexts; ++i) {
        if constexpr (kLearns) {
            slots[i] = writable[i] = model.histories.find_or_take(hashes[i]);
        } else {
            slots[i] = model.histories.find(hashes[i]);
        }
    }
    const uint32_t length = kLearns && model.match ? model.match->length() : 0;
    const uint32_t expected = length > 0 ? model.match->expected() : 0;
    Learned& learned = model.learned();
    const int rate = learned.rate();
    uint32_t node = 0;
    for (int i = 0; i < 4; ++i) {
        if (partial >= 8 && partial < 16) prefetch_both(model.histories, keys, partial);
        Prediction prediction;
        const MatchInput match = match_input(length, expected, partial);
        const bool bit = code(predict(learned, slots, document.cursor.last, partial, node, match, prediction));
        if constexpr (kLearns) {
            learn(learned, prediction, rate, bit);
            for (int k = 0; k < kNumContexts; ++k) {
                writable[k][node] = kBitHistories.next[prediction.states[k]][bit ? 1 : 0];
            }
        }
        partial = partial * 2 + (bit ? 1 : 0);
        node = node * 2 + (bit ? 2 : 1);
    }
    return partial;
}

// Codes bytes. code(position, shift, p1) codes bit `shift` (7 to 0) of byte `position` and returns it;
// end_byte(position, byte) returns false to stop.
template <bool kLearns, class Code, class EndByte>
FASTCOMPRESS_INLINED void code_bytes(ByteModel& model, DocumentState& document, size_t num_bytes, const Code& code,
                                     const EndByte& end_byte) {
    uint64_t keys[kNumContexts];
    SlotHashes hashes;
    for (size_t position = 0; position < num_bytes; ++position) {
        document.reset_if_due(model.params.reset_interval);
        document.cursor.context_keys(kLearns ? model.record() : Record(), keys);
        hash_slots(model.histories, keys, 1, hashes);
        if (kLearns && model.match) model.match->find();
        int shift = 8;
        const auto code_bit = [&](uint32_t p1) { return code(position, --shift, p1); };
        uint32_t partial = code_nibble<kLearns>(model, document, keys, hashes, 1, code_bit);
        hash_slots(model.histories, keys, partial, hashes);
        partial = code_nibble<kLearns>(model, document, keys, hashes, partial, code_bit);
        const auto byte = static_cast<uint8_t>(partial);
        document.append(byte);
        if constexpr (kLearns) ++model.learned().num_bytes;
        if (kLearns && model.match) {
            model.match->append(byte, document.cursor.last, document.cursor.num_known);
            model.records.append(document.cursor.last, document.cursor.num_known, model.match->position());
        }
        if (!end_byte(position, byte)) return;
    }
}

}  // namespace fastcompress::context_mixer
