#include "fastcompress/bpe/encoder.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

// Below this length scanning for the lowest rank beats the queue (measured: benchmarks/LOG.md, 2026-11-28).
constexpr size_t kMaxScanBytes = 96;

// The number of threads that have enough to do to be worth starting.
size_t threads_worth(std::span<const Bytes> texts) {
    constexpr size_t kMinBytesPerThread = size_t{1} << 16;
    size_t num_bytes = 0;
    for (const Bytes text : texts) num_bytes += text.size();
    return 1 + num_bytes / kMinBytesPerThread;
}

}  // namespace

void Encoder::encode(Bytes text, TokenBuffer& out) {
    pretokenizer::PretokenFinder finder(vocabulary_.pattern(), text);
    while (finder.next()) {
        encode_found(finder, text, out);
        cache_.grow_if_crowded();
    }
}

void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out) {
    const std::span<const uint32_t> ends = found.ends();
    batch_.base = text.data() + found.begin();
    batch_.borders[0] = 0;
    for (size_t first = 0; first < ends.size(); first += Batch::kMaxSize) {
        const std::span<const uint32_t> batch_ends =
            ends.subspan(first, std::min(Batch::kMaxSize, ends.size() - first));
        prepare(batch_ends, text.size() - found.begin());
        emit(batch_ends.size(), out);
        batch_.borders[0] = batch_ends.back();
    }
}

// First phase: keys, and asking for the cache lines they may be in, so that the waits for memory overlap instead of
// adding up. `num_bytes` may be read from the base on.
void Encoder::prepare(std::span<const uint32_t> ends, size_t num_bytes) {
    Batch& batch = batch_;
    const size_t count = ends.size();
    // Sixteen bytes are read of each pretoken, which is too many for the last ones of a text: those are copied.
    size_t num_readable = count;
    while (num_readable > 0 && num_bytes - (num_readable > 1 ? ends[num_readable - 2] : batch.borders[0]) < 16) {
        --num_readable;
    }
    uint32_t longest = 0;
    uint32_t begin = batch.borders[0];
    for (size_t i = 0; i < num_readable; ++i) {
        const uint32_t end = ends[i];
        batch.keys[i] = ShortKey::of_readable(batch.base + begin, end - begin);
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        batch.borders[i + 1] = end;
        longest = std::max(longest, end - begin);
        begin = end;
    }
    for (size_t i = num_readable; i < count; ++i) {
        batch.borders[i + 1] = ends[i];
        const Bytes pretoken = batch.pretoken(i);
        batch.keys[i] = ShortKey::of(pretoken.first(std::min(pretoken.size(), ShortKey::kMaxBytes)));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        longest = std::max(longest, static_cast<uint32_t>(pretoken.size()));
    }
    if (longest <= ShortKey::kMaxBytes) return;
    for (size_t i = 0; i < count; ++i) {
        const Bytes pretoken = batch.pretoken(i);
        if (pretoken.size() <= ShortKey::kMaxBytes) continue;
        batch.keys[i] = ShortKey::of_long(pretoken);
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
    }
}

// Second phase: look them up, and copy the ids of those that are known.
void Encoder::emit(size_t count, TokenBuffer& out) {
    constexpr size_t kIdsEach = PretokenCache::kMaxInlineIds;
    const Batch& batch = batch_;
    bool has_learned = false;
    TokenId* tokens = out.reserve(kIdsEach * count);
    TokenId* committed = tokens;
    for (size_t i = 0; i < count; ++i) {
        const PretokenCache::Entry* entry = PretokenCache::find(batch.sets[i], batch.keys[i]);
        if (entry != nullptr && PretokenCache::is_inline(*entry)) [[likely]] {
            tokens += PretokenCache::copy_ids(*entry, tokens);
            continue;
        }
        if (entry == nullptr && !has_learned) {
            learn(i, count);
            has_learned = true;
        }
        out.commit(static_cast<size_t>(tokens - committed));
        look_up(batch.pretoken(i), batch.keys[i], batch.sets[i], out);
        committed = tokens = out.reserve(kIdsEach * (count - i));
    }
    out.commit(static_cast<size_t>(tokens - committed));
}

// Puts what is unknown of pretokens [begin, end) of the batch into the cache, all of it at once: there is more to do
// while memory is waited for.
void Encoder::learn(size_t begin, size_t end) {
    std::array<uint16_t, Batch::kMaxSize> unknown;
    static_assert(Batch::kMaxSize <= 65536);
    size_t num_unknown = 0;
    for (size_t i = begin; i < end; ++i) {
        if (PretokenCache::find(batch_.sets[i], batch_.keys[i]) != nullptr) continue;
        if (batch_.pretoken(i).size() > MergeLanes::kMaxBytes) continue;
        if (cache_.find_beside(batch_.sets[i], batch_.keys[i]) != nullptr) continue;
        vocabulary_.prefetch_whole_pretoken(batch_.keys[i]);
        unknown[num_unknown++] = static_cast<uint16_t>(i);
    }
    size_t num_to_merge = 0;
    for (const uint16_t i : std::span(unknown).first(num_unknown)) {
        const Bytes pretoken = batch_.pretoken(i);
        const TokenId whole = find_whole(pretoken, batch_.keys[i]);
        if (whole == kNoToken) {
            unknown[num_to_merge++] = i;
        } else {
            cache_.insert(batch_.sets[i], batch_.keys[i], pretoken, {&whole, 1});
        }
    }
    lanes_.merge(
        num_to_merge, [&](size_t k) { return batch_.pretoken(unknown[k]); },
        [&](size_t k, std::span<const TokenId> ids) {
            const uint16_t i = unknown[k];
            cache_.insert(batch_.sets[i], batch_.keys[i], batch_.pretoken(i), ids);
        });
}

TokenId Encoder::find_whole(Bytes pretoken, ShortKey key) const {
    return pretoken.size() > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(pretoken)
                                                 : vocabulary_.whole_pretoken(key);
}

void Encoder::encode_pretoken(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.empty()) return;
    const ShortKey key = pretoken.size() > ShortKey::kMaxBytes ? ShortKey::of_long(pretoken) : ShortKey::of(pretoken);
    look_up(pretoken, key, cache_.prefetch(key), out);
    cache_.grow_if_crowded();
}

void Encoder::look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out) {
    const PretokenCache::Entry* entry = PretokenCache::find(set, key);
    if (entry == nullptr) entry = cache_.find_beside(set, key);
    if (entry == nullptr) {
        encode_unknown(pretoken, key, set, out);
    } else if (PretokenCache::is_inline(*entry)) {
        out.commit(PretokenCache::copy_ids(*entry, out.reserve(PretokenCache::kMaxInlineIds)));
    } else if (const std::span<const TokenId> ids = cache_.outlined_ids(*entry, pretoken); !ids.empty()) {
        // Four at a time, the last ones perhaps too many: cheaper than a call to copy them.
        constexpr size_t kStep = PretokenCache::kMaxInlineIds;
        TokenId* tokens = out.reserve(ids.size() + kStep);
        for (size_t i = 0; i < ids.size(); i += kStep) std::memcpy(tokens + i, ids.data() + i, kStep * sizeof(TokenId));
        out.commit(ids.size());
    } else {
        encode_unknown(pretoken, key, set, out);
    }
}

void Encoder::encode_unknown(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out) {
    const size_t before = out.size();
    const TokenId whole = find_whole(pretoken, key);
    if (whole != kNoToken) {
        out.append({&whole, 1});
    } else {
        encode_by_merges(pretoken, out);
    }
    if (pretoken.size() <= PretokenCache::kMaxBytes) {
        cache_.insert(set, key, pretoken, out.tokens().subspan(before));
    }
}

void Encoder::encode_by_merges(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.size() <= kMaxScanBytes) {
        merge_by_scan(pretoken, out);
    } else {
        long_.merge(pretoken, out);
    }
}

// Merges over a doubly linked list in small arrays. The pair that begins at position i has the key rank * 256 + i, or
// all ones if it does not merge: so the least key is the leftmost pair of lowest rank. O(n * merges), no allocation.
void Encoder::merge_by_scan(Bytes pretoken, TokenBuffer& out) {
    static_assert(kMaxScanBytes <= 256 && kMaxVocabularySize <= size_t{1} << 24);
    constexpr uint32_t kNone = 0xffffffffu;
    TokenId ids[kMaxScanBytes];
    uint8_t previous[kMaxScanBytes];
    uint8_t next[kMaxScanBytes + 1];
    uint32_t keys[kMaxScanBytes];
    const size_t size = pretoken.size();

    const auto set_pair = [&](size_t i, uint32_t rank) {
        keys[i] = rank == kNoRank ? kNone : rank << 8 | static_cast<uint32_t>(i);
    };
    for (size_t i = 0; i < size; ++i) {
        ids[i] = vocabulary_.byte_token(pretoken[i]);
        previous[i] = static_cast<uint8_t>(i - 1);
        next[i] = static_cast<uint8_t>(i + 1);
    }
    for (size_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_rank(pretoken[i], pretoken[i + 1]));
    keys[size - 1] = kNone;
    for (;;) {
        uint32_t least = kNone;
        for (size_t i = 0; i + 1 < size; ++i) {
            least = std::min(least, keys[i]);
#if defined(__GNUC__)
            asm("" : "+r"(least));  // stay scalar: vector loads would wait for the keys just stored one by one
#endif
        }
        if (least == kNone) break;
        const size_t i = least & 0xff;
        const size_t merged = next[i];
        const size_t after = next[merged];
        ids[i] = vocabulary_.merge_result(least >> 8);
        next[i] = static_cast<uint8_t>(after);
        keys[merged] = kNone;
        keys[i] = kNone;

        if (after < size) {
            previous[after] = static_cast<uint8_t>(i);
            set_pair(i, vocabulary_.find_rank(ids[i], ids[after]));
        }
        if (i > 0) set_pair(previous[i], vocabulary_.find_rank(ids[previous[i]], ids[i]));
    }
    TokenId* tokens = out.reserve(size);
    size_t count = 0;
    for (size_t i = 0; i < size; i = next[i]) tokens[count++] = ids[i];
    out.commit(count);
}

std::unique_ptr<Encoder> EncoderPool::take() {
    std::unique_ptr<Encoder> encoder;
    if (!busy_.test_and_set(std::memory_order_acquire)) {
        if (!idle_.empty()) {
            encoder = std::move(idle_.back());
            idle_.pop_back();
        }
        busy_.clear(std::memory_order_release);
    }
    return encoder ? std::move(encoder) : std::make_unique<Encoder>(vocabulary_);
}

void EncoderPool::give_back(std::unique_ptr<Encoder> encoder) {
    if (busy_.test_and_set(std::memory_order_acquire)) return;  // somebody is at it: let this one go
    if (idle_.size() < default_num_threads()) idle_.push_back(std::move(encoder));
    busy_.clear(std::memory_order_release);
}

EncodedBatch encode_batch(EncoderPool& pool, std::span<const Bytes> texts, size_t num_threads) {
    return encode_batch(pool, texts, num_threads,
                        [](Encoder& encoder, Bytes text, TokenBuffer& out) { encoder.encode(text, out); });
}

EncodedBatch encode_batch(EncoderPool& pool, std::span<const Bytes> texts, size_t num_threads,
                          const EncodeText& encode_text) {
    EncodedBatch batch;
    batch.offsets.assign(texts.size() + 1, 0);
    num_threads = std::min({num_threads, threads_worth(texts), std::max<size_t>(1, texts.size())});
    std::vector<TokenBuffer> parts(num_threads);
    std::vector<size_t> part_begins(num_threads + 1, texts.size());
    const auto weight = [&](size_t i) { return texts[i].size() + 64; };  // 64: what an empty text costs, about
    parallel_parts(texts.size(), num_threads, weight, [&](size_t part, size_t begin, size_t end) {
        TokenBuffer& out = parts[part];
        part_begins[part] = begin;
        pool.with_encoder([&](Encoder& encoder) {
            for (size_t i = begin; i < end; ++i) {
                encode_text(encoder, texts[i], out);
                batch.offsets[i + 1] = out.size();  // within the part, made absolute below
            }
        });
    });
    batch.tokens = std::move(parts[0]);
    for (size_t part = 1; part < parts.size(); ++part) {
        for (size_t i = part_begins[part]; i < part_begins[part + 1]; ++i) batch.offsets[i + 1] += batch.tokens.size();
        batch.tokens.append(parts[part].tokens());
        parts[part] = TokenBuffer();
    }
    return batch;
}

}  // namespace fastcompress::bpe
