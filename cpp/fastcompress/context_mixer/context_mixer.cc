#include "fastcompress/context_mixer/context_mixer.h"

#include <cassert>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "fastcompress/common/rollback.h"
#include "fastcompress/context_mixer/model_coding.h"
#include "fastcompress/context_mixer/model_state.h"

namespace fastcompress::context_mixer {

Status check(const MixerParams& params) {
    if (params.log2_table_bytes < kMinLog2TableBytes || params.log2_table_bytes > kMaxLog2TableBytes) {
        return invalid_argument("log2_table_bytes is " + std::to_string(params.log2_table_bytes) + "; it must be " +
                                std::to_string(kMinLog2TableBytes) + " to " + std::to_string(kMaxLog2TableBytes));
    }
    if (params.log2_match_entries != 0 &&
        (params.log2_match_entries < kMinLog2MatchEntries || params.log2_match_entries > kMaxLog2MatchEntries)) {
        return invalid_argument("log2_match_entries is " + std::to_string(params.log2_match_entries) +
                                "; it must be 0 (no match model) or " + std::to_string(kMinLog2MatchEntries) + " to " +
                                std::to_string(kMaxLog2MatchEntries));
    }
    return {};
}

void Learned::clear() {
    for (int state = 0; state < 256; ++state) {
        const BitHistory history = kBitHistories.histories[static_cast<size_t>(state)];
        const uint32_t p = ((2u * history.ones + 1) << 22) / (2u * (history.zeros + history.ones) + 2);
        for (auto& map : by_history) map[state] = AdaptiveBit::make(p, state == 0 ? kFixedCount : 0);
    }
    for (uint32_t bucket = 0; bucket < kNumMatchBuckets; ++bucket) {
        const uint32_t failure = (uint32_t{1} << 22) / (bucket + 2);
        by_match[bucket][0] = AdaptiveBit::make(failure, 0);
        by_match[bucket][1] = AdaptiveBit::make((uint32_t{1} << 22) - failure, 0);
    }
    for (MixerWeights& row : weights) {
        for (int i = 0; i < kNumInputs; ++i) row[i] = i < kNumContexts ? kMaxWeight / 4 : 0;
    }
    for (auto& row : final_weights) std::fill(std::begin(row), std::end(row), 65536 / kNumMixers);
    for (AdaptiveProbabilityMap& row : maps) row.clear();
    num_bytes = 0;
}

ByteModel::ByteModel(const MixerParams& settings)
    : params(settings), histories(settings.log2_table_bytes - 6), learned_memory(1) {
    learned().clear();
    if (params.log2_match_entries > 0) match.emplace(params.log2_match_entries);
}

ByteModel::ByteModel(const ByteModel& other)
    : params(other.params),
      is_frozen(other.is_frozen),
      histories(other.params.log2_table_bytes - 6),
      learned_memory(1) {
    learned() = other.learned();
    if (other.match) match.emplace(params.log2_match_entries);
    std::memcpy(&histories.bucket(0), &other.histories.bucket(0), histories.num_buckets() * sizeof(HistoryBucket));
}

ContextMixer::ContextMixer(const MixerParams& params) : model_(std::make_unique<ByteModel>(params)) {
    assert(check(params).ok());
}
ContextMixer::ContextMixer(const ContextMixer& other) : model_(std::make_unique<ByteModel>(*other.model_)) {}
ContextMixer::ContextMixer(ContextMixer&& other) noexcept = default;
ContextMixer& ContextMixer::operator=(ContextMixer&& other) noexcept = default;
ContextMixer::~ContextMixer() = default;

const MixerParams& ContextMixer::params() const {
    return model_->params;
}
bool ContextMixer::is_frozen() const {
    return model_->is_frozen;
}
uint64_t ContextMixer::num_bytes() const {
    return model_->learned().num_bytes;
}

void ContextMixer::update(Bytes data) {
    assert(!is_frozen());
    learn_bytes(*model_, data);
}

void ContextMixer::reset() {
    model_->document = DocumentState();
    if (model_->match) model_->match->forget();
    model_->records = RecordModel();
}

void ContextMixer::freeze() {
    model_->is_frozen = true;
    model_->match.reset();
    reset();
}

void ContextMixer::encode(Bytes data, arithmetic::RangeEncoder& encoder) {
    if (data.size() > SIZE_MAX / 8) throw std::bad_alloc();
    if (is_frozen()) {
        // Only the state of the document and the coder change.
        DocumentState document = model_->document;
        const arithmetic::RangeEncoder::Snapshot before = encoder.snapshot();
        Rollback rollback([&] { encoder.restore(before); });
        encode_bytes(*model_, document, data, encoder);
        rollback.release();
        model_->document = document;
        return;
    }
    encoder.reserve(8 * data.size(), arithmetic::kBitPrecision);
    encode_bytes(*model_, model_->document, data, encoder);
}

Status ContextMixer::decode(arithmetic::RangeDecoder& decoder, std::span<uint8_t> out) {
    return decode_bytes(*model_, model_->document, decoder, out);
}

std::vector<uint8_t> ContextMixer::encode(Bytes data) const {
    arithmetic::RangeEncoder encoder;
    if (is_frozen()) {
        DocumentState document;
        encode_bytes(*model_, document, data, encoder);
    } else {
        ByteModel copy(*model_);
        encode_bytes(copy, copy.document, data, encoder);
    }
    return encoder.finish();
}

Result<std::vector<uint8_t>> ContextMixer::decode(Bytes code, size_t num_bytes) const {
    arithmetic::RangeDecoder decoder(code);
    // Grows with what is decoded: a number in a header must not decide what is allocated.
    std::vector<uint8_t> out;
    std::optional<ContextMixer> copy;
    if (!is_frozen()) copy.emplace(*this);
    DocumentState document;
    while (out.size() < num_bytes) {
        const size_t done = out.size();
        out.resize(std::min(num_bytes, std::max<size_t>(2 * done, 65536)));
        const std::span<uint8_t> rest = std::span(out).subspan(done);
        const auto error = copy ? copy->decode(decoder, rest) : decode_bytes(*model_, document, decoder, rest);
        if (!error.ok()) return error;
    }
    if (Status status = decoder.check_end(code.size()); !status.ok()) return status;
    return out;
}

void ContextMixer::distribution(Bytes context, unsigned precision, std::span<uint32_t, 256> frequencies) const {
    assert(precision >= 8 && precision <= arithmetic::kMaxPrecision);
    next_byte(*model_, state_after(*model_, context), precision, frequencies);
}

// A frozen model is only read.
FrozenReader::FrozenReader(const ContextMixer& frozen)
    : model_(frozen.model_.get()), document_(std::make_unique<DocumentState>()) {
    assert(frozen.is_frozen());
}
FrozenReader::FrozenReader(const FrozenReader& other)
    : model_(other.model_), document_(std::make_unique<DocumentState>(*other.document_)) {}
FrozenReader& FrozenReader::operator=(const FrozenReader& other) {
    model_ = other.model_;
    *document_ = *other.document_;
    return *this;
}
FrozenReader::~FrozenReader() = default;

void FrozenReader::encode(uint8_t byte, arithmetic::RangeEncoder& encoder) {
    encode_bytes(*model_, *document_, {&byte, 1}, encoder);
}

uint8_t FrozenReader::decode(arithmetic::RangeDecoder& decoder) {
    uint8_t byte = 0;
    // The caller asks the decoder whether the code was valid, once for many bytes.
    (void)decode_bytes(*model_, *document_, decoder, {&byte, 1});
    return byte;
}

void FrozenReader::skip(uint8_t byte) {
    document_->reset_if_due(model_->params.reset_interval);
    document_->append(byte);
}

}  // namespace fastcompress::context_mixer
