#include "fastcompress/bpe/encode/dropout.h"

#include <algorithm>
#include <cmath>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;  // SplitMix64's step

uint64_t stream_of(uint64_t seed, uint64_t offset) {
    return mix64(mix64(seed + kGamma) + offset);
}

// Ascending keys are the order of the rule: by rank, then from left to right.
uint64_t key_of(uint32_t rank, uint32_t position) {
    return uint64_t{rank} << 32 | position;
}

}  // namespace

DropoutEncoder::DropoutEncoder(const Vocabulary& vocabulary, double dropout)
    : vocabulary_(vocabulary), threshold_(static_cast<uint64_t>(std::ceil(std::ldexp(dropout, 53)))) {}

bool DropoutEncoder::skips(uint64_t& state) const {
    state += kGamma;
    return mix64(state) >> 11 < threshold_;
}

void DropoutEncoder::encode(const DropoutText& text, TokenBuffer& out) {
    const auto encode_at = [&](uint64_t offset, Bytes pretoken) {
        encode_pretoken(pretoken, stream_of(text.seed, text.begin + offset), out);
    };
    out.append_all_or_none([&] {
        if (text.ends.empty()) {
            pretokenizer::for_each_pretoken(vocabulary_.pattern(), text.bytes, [&](Bytes pretoken) {
                encode_at(static_cast<uint64_t>(pretoken.data() - text.bytes.data()), pretoken);
            });
        }
        uint64_t begin = 0;
        for (const uint64_t end : text.ends) {
            encode_at(begin, text.bytes.subspan(begin, end - begin));
            begin = end;
        }
    });
}

void DropoutEncoder::encode_pretoken(Bytes pretoken, uint64_t state, TokenBuffer& out) {
    if (pretoken.size() <= kMaxScanBytes) {
        merge_by_scan(pretoken, state, out);
    } else {
        merge_by_order(pretoken, state, out);
    }
}

// Over a linked list in small arrays: the pair that begins at position i has the key rank * 256 + i, or all ones if it
// does not merge; the candidates in their order are ever greater keys.
void DropoutEncoder::merge_by_scan(Bytes pretoken, uint64_t state, TokenBuffer& out) const {
    constexpr uint32_t kNone = 0xffffffffu;
    TokenId ids[kMaxScanBytes];
    uint8_t previous[kMaxScanBytes + 1];
    uint8_t next[kMaxScanBytes];
    uint32_t keys[kMaxScanBytes];
    const size_t size = pretoken.size();

    const auto set_pair = [&](size_t i, uint32_t rank) {
        keys[i] = rank == kNoRank ? kNone : rank << 8 | static_cast<uint32_t>(i);
    };
    const auto least_from = [&](uint32_t bound) {
        uint32_t least = kNone;
        for (size_t i = 0; i < size; ++i) {
            if (keys[i] >= bound) least = std::min(least, keys[i]);
        }
        return least;
    };
    for (size_t i = 0; i < size; ++i) {
        ids[i] = vocabulary_.byte_token(pretoken[i]);
        previous[i + 1] = static_cast<uint8_t>(i);
        next[i] = static_cast<uint8_t>(i + 1);
        keys[i] = kNone;
    }
    for (size_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_rank(pretoken[i], pretoken[i + 1]));
    for (;;) {
        uint32_t key = least_from(0);
        while (key != kNone && skips(state)) key = least_from(key + 1);
        if (key == kNone) break;
        const size_t i = key & 0xff;
        const size_t merged = next[i];
        const size_t after = next[merged];
        ids[i] = vocabulary_.merge_result(key >> 8);
        next[i] = static_cast<uint8_t>(after);
        previous[after] = static_cast<uint8_t>(i);
        keys[merged] = keys[i] = kNone;
        if (after < size) set_pair(i, vocabulary_.find_rank(ids[i], ids[after]));
        if (i > 0) set_pair(previous[i], vocabulary_.find_rank(ids[previous[i]], ids[i]));
    }
    TokenId* tokens = out.reserve(size);
    size_t count = 0;
    for (size_t i = 0; i < size; i = next[i]) tokens[count++] = ids[i];
    out.commit(count);
}

// The candidates are an ordered set of their keys.
void DropoutEncoder::merge_by_order(Bytes pretoken, uint64_t state, TokenBuffer& out) {
    tokens_.assign(vocabulary_, pretoken);
    const uint32_t size = tokens_.size();
    ranks_.assign(size, kNoRank);
    candidates_.clear();

    const auto set_pair = [&](uint32_t i, uint32_t rank) {
        if (ranks_[i] != kNoRank) candidates_.erase(key_of(ranks_[i], i));
        ranks_[i] = rank;
        if (rank != kNoRank) candidates_.insert(key_of(rank, i));
    };
    for (uint32_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_rank(pretoken[i], pretoken[i + 1]));
    for (;;) {
        auto candidate = candidates_.begin();
        while (candidate != candidates_.end() && skips(state)) ++candidate;
        if (candidate == candidates_.end()) break;
        const auto i = static_cast<uint32_t>(*candidate);
        const TokenId id = vocabulary_.merge_result(ranks_[i]);
        set_pair(tokens_.merge(i, id), kNoRank);
        const uint32_t after = tokens_.next(i);
        set_pair(i, after < size ? vocabulary_.find_rank(id, tokens_.id(after)) : kNoRank);
        if (i > 0) set_pair(tokens_.previous(i), vocabulary_.find_rank(tokens_.id(tokens_.previous(i)), id));
    }
    TokenId* ids = out.reserve(size);
    size_t count = 0;
    for (uint32_t i = 0; i < size; i = tokens_.next(i)) ids[count++] = tokens_.id(i);
    out.commit(count);
}

EncodedBatch encode_batch_with_dropout(const Vocabulary& vocabulary, std::span<const DropoutText> texts, double dropout,
                                       size_t num_threads) {
    num_threads = std::max<size_t>(1, std::min(num_threads, texts.size()));
    std::vector<EncodedBatch> parts(num_threads);
    const auto weight = [&](size_t i) { return texts[i].bytes.size() + 64; };
    parallel_parts(texts.size(), num_threads, weight, [&](size_t part, size_t begin, size_t end) {
        DropoutEncoder encoder(vocabulary, dropout);
        for (size_t i = begin; i < end; ++i) {
            encoder.encode(texts[i], parts[part].tokens);
            parts[part].offsets.push_back(parts[part].tokens.size());
        }
    });
    EncodedBatch batch;
    batch.offsets.reserve(texts.size() + 1);
    batch.offsets.push_back(0);
    for (EncodedBatch& part : parts) {
        const size_t before = batch.tokens.size();
        for (const uint64_t end : part.offsets) batch.offsets.push_back(before + end);
        batch.tokens.append(part.tokens.tokens());
        part = {};
    }
    return batch;
}

}  // namespace fastcompress::bpe
