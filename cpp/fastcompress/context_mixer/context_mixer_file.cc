// Writes and reads the file of a context mixer (FORMAT.md, "The file").
#include <algorithm>
#include <cstring>
#include <string>

#include "fastcompress/context_mixer/context_mixer.h"
#include "fastcompress/context_mixer/model_coding.h"
#include "fastcompress/context_mixer/model_state.h"

namespace fastcompress::context_mixer {
namespace {

constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'C', 'M', 'X', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = sizeof(Sha256Digest);

void write_u16(ByteWriter& out, uint32_t value) {
    out.u8(static_cast<uint8_t>(value));
    out.u8(static_cast<uint8_t>(value >> 8));
}
uint32_t read_u16(ByteReader& in) {
    const uint32_t low = in.u8();
    return low | uint32_t{in.u8()} << 8;
}

bool is_empty(const HistoryBucket& bucket) {
    static constexpr HistoryBucket kEmpty = {};
    return std::memcmp(&bucket, &kEmpty, sizeof kEmpty) == 0;
}

void write_histories(ByteWriter& out, const HistoryTable& table) {
    for (size_t i = 0; i < table.num_buckets();) {
        size_t begin = i;
        while (begin < table.num_buckets() && is_empty(table.bucket(begin))) ++begin;
        size_t end = begin;
        while (end < table.num_buckets() && !is_empty(table.bucket(end))) ++end;
        out.u32(static_cast<uint32_t>(begin - i));
        out.u32(static_cast<uint32_t>(end - begin));
        for (size_t k = begin; k < end; ++k) {
            const HistoryBucket& bucket = table.bucket(k);
            out.raw(Bytes(bucket.checks, sizeof bucket.checks));
            for (const auto& slot : bucket.states) out.raw(slot);
        }
        i = end;
    }
}

Status read_histories(ByteReader& in, HistoryTable& table) {
    const auto last = static_cast<uint8_t>(kBitHistories.size - 1);
    for (size_t i = 0; i < table.num_buckets();) {
        const size_t num_empty = in.u32();
        const size_t num_full = in.u32();
        if (!in.ok() || num_empty + num_full == 0 || num_empty + num_full > table.num_buckets() - i ||
            num_full > in.remaining() / sizeof(HistoryBucket)) {
            return malformed("context mixer whose runs of bit histories do not fill its table");
        }
        // Each model has exactly one file: runs are as long as possible.
        if ((num_empty == 0 && i > 0) || (num_full == 0 && num_empty < table.num_buckets() - i)) {
            return malformed("context mixer whose runs of bit histories are cut");
        }
        i += num_empty;
        for (size_t k = 0; k < num_full; ++k, ++i) {
            HistoryBucket& bucket = table.bucket(i);
            const Bytes checks = in.raw(sizeof bucket.checks);
            const Bytes states = in.raw(sizeof bucket.states);
            if (std::ranges::any_of(states, [&](uint8_t state) { return state > last; })) {
                return malformed("context mixer with a bit history that does not exist");
            }
            std::memcpy(bucket.checks, checks.data(), checks.size());
            std::memcpy(bucket.states, states.data(), sizeof bucket.states);
            if (is_empty(bucket)) return malformed("context mixer with a run of bit histories that holds none");
        }
    }
    return {};
}

void write_learned(ByteWriter& out, const Learned& learned) {
    for (const auto& map : learned.by_history) {
        for (int state = 0; state < kBitHistories.size; ++state) out.u32(map[state].value);
    }
    for (const auto& pair : learned.by_match) {
        for (const AdaptiveBit& bit : pair) out.u32(bit.value);
    }
    for (const MixerWeights& row : learned.weights) {
        for (int i = 0; i < kNumUsedInputs; ++i) out.u32(static_cast<uint32_t>(row[i]));
    }
    for (const auto& row : learned.final_weights) {
        for (const int32_t weight : row) out.u32(static_cast<uint32_t>(weight));
    }
    for (const AdaptiveProbabilityMap& row : learned.maps) {
        for (const uint16_t point : row.points) write_u16(out, point);
    }
}

bool read_weight(ByteReader& in, int32_t limit, int32_t& weight) {
    weight = static_cast<int32_t>(in.u32());
    return weight >= -limit && weight <= limit;
}

// Any bit pattern is a valid AdaptiveBit and a valid point; weights have limits.
Status read_learned(ByteReader& in, Learned& learned) {
    bool is_good = true;
    for (auto& map : learned.by_history) {
        for (int state = 0; state < kBitHistories.size; ++state) map[state].value = in.u32();
        is_good = is_good && map[0].value == AdaptiveBit::make(1u << 21, kFixedCount).value;
    }
    for (auto& pair : learned.by_match) {
        for (AdaptiveBit& bit : pair) bit.value = in.u32();
    }
    for (MixerWeights& row : learned.weights) {
        for (int i = 0; i < kNumUsedInputs; ++i) is_good = read_weight(in, kMaxWeight, row[i]) && is_good;
    }
    for (auto& row : learned.final_weights) {
        for (int32_t& weight : row) is_good = read_weight(in, kMaxFinalWeight, weight) && is_good;
    }
    for (AdaptiveProbabilityMap& row : learned.maps) {
        for (uint16_t& point : row.points) point = static_cast<uint16_t>(read_u16(in));
    }
    if (!in.ok()) return malformed("context mixer that ends before its tables do");
    if (!is_good) return malformed("context mixer with a number out of range");
    return {};
}

}  // namespace

std::vector<uint8_t> ContextMixer::serialize() const {
    const ByteModel& model = *model_;
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u32(model.params.log2_table_bytes);
    out.u32(model.params.log2_match_entries);
    out.u32(model.params.reset_interval);
    out.u8(model.is_frozen ? 1 : 0);
    out.u32(static_cast<uint32_t>(num_bytes()));
    out.u32(static_cast<uint32_t>(num_bytes() >> 32));
    write_learned(out, model.learned());
    write_histories(out, model.histories);
    out.raw(sha256(out.bytes()));
    return out.take();
}

Result<ContextMixer> ContextMixer::parse(Bytes blob) {
    if (blob.size() < sizeof kMagic || !std::equal(std::begin(kMagic), std::end(kMagic), blob.begin())) {
        return malformed("not a fastcompress context mixer (its first eight bytes are not 89 46 43 43 4D 58 0D 0A)");
    }
    ByteReader in(blob.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (in.ok() && version != kVersion) {
        return malformed("context mixer of format version " + std::to_string(version) + "; this build reads version " +
                         std::to_string(kVersion) + ": update fastcompress");
    }
    if (in.remaining() < kDigestBytes) return malformed("truncated context mixer: copy the whole file again");
    const Sha256Digest digest = sha256(blob.first(blob.size() - kDigestBytes));
    if (!std::ranges::equal(digest, blob.last(kDigestBytes))) {
        return malformed("context mixer with a wrong SHA-256: the file is truncated or damaged; copy it again");
    }
    in = ByteReader(blob.subspan(sizeof kMagic + 4, blob.size() - sizeof kMagic - 4 - kDigestBytes));

    MixerParams params;
    params.log2_table_bytes = in.u32();
    params.log2_match_entries = in.u32();
    params.reset_interval = in.u32();
    const uint8_t frozen = in.u8();
    const uint64_t num_low = in.u32();
    const uint64_t num_bytes = num_low | uint64_t{in.u32()} << 32;
    if (!in.ok() || frozen > 1) return malformed("context mixer with a malformed header");
    if (Status status = check(params); !status.ok())
        return malformed("context mixer of impossible settings: " + status.message);
    // A large table may be all empty, but an empty table takes no memory until it is written to.
    ContextMixer mixer(params);
    if (frozen) mixer.freeze();
    ByteModel& model = *mixer.model_;
    if (Status status = read_learned(in, model.learned()); !status.ok()) return status;
    model.learned().num_bytes = num_bytes;
    if (Status status = read_histories(in, model.histories); !status.ok()) return status;
    if (in.remaining() > 0) return malformed("context mixer with bytes after its end");
    return mixer;
}

Sha256Digest ContextMixer::fingerprint() const {
    return sha256(serialize());
}

}  // namespace fastcompress::context_mixer
