#include "fastcompress/bpe/encoder.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

// Below this length scanning for the lowest rank beats the queue (measured: benchmarks/LOG.md, 2026-11-28).
constexpr size_t kMaxScanBytes = 96;

// After a longer pretoken the buffers of merge_by_rank are given back.
constexpr size_t kMaxKeptBytes = size_t{1} << 16;

// The number of threads that have enough to do to be worth starting.
size_t threads_worth(std::span<const Bytes> texts) {
    constexpr size_t kMinBytesPerThread = size_t{1} << 16;
    size_t num_bytes = 0;
    for (const Bytes text : texts) num_bytes += text.size();
    return 1 + num_bytes / kMinBytesPerThread;
}

}  // namespace

void Encoder::encode(Bytes text, TokenBuffer& out) {
    // Two phases a batch of pretokens: first compute keys and prefetch their sets, then look them up. So the waits for
    // memory overlap instead of adding up.
    size_t count = 0;
    // Where 16 bytes may be read: not at the text's end, whose pretokens are copied first.
    const uint8_t* const wide_end = text.data() + (text.size() < 16 ? 0 : text.size() - 15);
    pretokenizer::for_each_pretoken(vocabulary_.pattern(), text, [&](Bytes pretoken) {
        Pending& pending = pending_[count++];
        pending.bytes = pretoken;
        if (pretoken.size() <= ShortKey::kMaxBytes) {
            uint8_t copy[16];
            const uint8_t* bytes = pretoken.data();
            if (bytes >= wide_end) {
                std::memset(copy, 0, sizeof copy);
                std::memcpy(copy, bytes, pretoken.size());
                bytes = copy;
            }
            pending.key = ShortKey::of_readable(bytes, pretoken.size());
            pending.set = cache_.prefetch(pending.key);
        }
        if (count == pending_.size()) {
            encode_pending(count, out);
            count = 0;
        }
    });
    encode_pending(count, out);
}

void Encoder::encode_pretoken(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.empty()) return;
    pending_[0].bytes = pretoken;
    if (pretoken.size() <= ShortKey::kMaxBytes) {
        pending_[0].key = ShortKey::of(pretoken);
        pending_[0].set = cache_.prefetch(pending_[0].key);
    }
    encode_pending(1, out);
}

void Encoder::encode_pending(size_t count, TokenBuffer& out) {
    for (const Pending& pending : std::span(pending_).first(count)) {
        if (pending.bytes.size() > ShortKey::kMaxBytes) {
            encode_long(pending.bytes, out);
            continue;
        }
        const PretokenCache::Entry* entry = PretokenCache::find(pending.set, pending.key);
        if (entry == nullptr) {
            encode_short(pending, out);
            continue;
        }
        TokenId* tokens = out.reserve(PretokenCache::kMaxIds);
        const uint32_t first = entry->ids[0];
        tokens[0] = first & 0xffffffu;
        tokens[1] = entry->ids[1];
        tokens[2] = entry->ids[2];
        tokens[3] = entry->ids[3];
        out.commit(first >> 24);
    }
    cache_.grow_if_crowded();
}

// A short pretoken that the first cache does not know. Those of more ids than it holds are in the second.
void Encoder::encode_short(const Pending& pending, TokenBuffer& out) {
    const TokenId whole = vocabulary_.whole_pretoken(pending.key);
    if (whole != kNoToken) {
        cache_.insert(pending.set, pending.key, {&whole, 1});
        return out.append({&whole, 1});
    }
    const uint64_t hash = pending.key.hash();
    const std::span<const TokenId> known = long_cache_.find(pending.bytes, hash);
    if (!known.empty()) return out.append(known);
    const size_t before = out.size();
    encode_by_merges(pending.bytes, out);
    const std::span<const TokenId> ids = out.tokens().subspan(before);
    if (ids.size() <= PretokenCache::kMaxIds) {
        cache_.insert(pending.set, pending.key, ids);
    } else {
        long_cache_.insert(pending.bytes, hash, ids);
    }
}

void Encoder::encode_long(Bytes pretoken, TokenBuffer& out) {
    const bool cacheable = pretoken.size() <= LongPretokenCache::kMaxBytes;
    const uint64_t hash = cacheable ? hash_bytes(pretoken) : 0;
    if (cacheable) {
        const std::span<const TokenId> known = long_cache_.find(pretoken, hash);
        if (!known.empty()) return out.append(known);
    }
    const size_t before = out.size();
    const TokenId whole = vocabulary_.whole_pretoken(pretoken);
    if (whole != kNoToken) {
        out.append({&whole, 1});
    } else {
        encode_by_merges(pretoken, out);
    }
    if (cacheable) long_cache_.insert(pretoken, hash, out.tokens().subspan(before));
}

void Encoder::encode_by_merges(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.size() <= kMaxScanBytes) {
        merge_by_scan(pretoken, out);
    } else {
        merge_by_rank(pretoken, out);
    }
}

// Merges over a doubly linked list in small arrays. The pair that begins at position i has the key rank * 256 + i, or
// all ones if it does not merge: so the least key is the leftmost pair of lowest rank. O(n * merges), no allocation.
void Encoder::merge_by_scan(Bytes pretoken, TokenBuffer& out) {
    static_assert(kMaxScanBytes <= 256 && kMaxVocabularySize <= size_t{1} << 24);
    constexpr uint32_t kNone = 0xffffffffu;
    TokenId ids[kMaxScanBytes];
    TokenId results[kMaxScanBytes];
    uint8_t previous[kMaxScanBytes];
    uint8_t next[kMaxScanBytes + 1];
    uint32_t keys[kMaxScanBytes];
    const size_t size = pretoken.size();

    const auto set_pair = [&](size_t i, PairTable::Entry entry) {
        keys[i] = entry.rank == kNoRank ? kNone : entry.rank << 8 | static_cast<uint32_t>(i);
        results[i] = entry.result;
    };
    for (size_t i = 0; i < size; ++i) {
        ids[i] = vocabulary_.byte_token(pretoken[i]);
        previous[i] = static_cast<uint8_t>(i - 1);
        next[i] = static_cast<uint8_t>(i + 1);
    }
    for (size_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_merge(pretoken[i], pretoken[i + 1]));
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
        ids[i] = results[i];
        next[i] = static_cast<uint8_t>(after);
        keys[merged] = kNone;
        keys[i] = kNone;

        if (after < size) {
            previous[after] = static_cast<uint8_t>(i);
            set_pair(i, vocabulary_.find_merge(ids[i], ids[after]));
        }
        if (i > 0) set_pair(previous[i], vocabulary_.find_merge(ids[previous[i]], ids[i]));
    }
    TokenId* tokens = out.reserve(size);
    size_t count = 0;
    for (size_t i = 0; i < size; i = next[i]) tokens[count++] = ids[i];
    out.commit(count);
}

// Merges over a doubly linked list of positions, a rank at a time. ranks[i] is the rank of the pair that begins at i
// now; a queued position whose pair has another rank by the time its turn comes is stale. Each merge queues at most
// two positions: O(n log n), in practice nearly linear.
void Encoder::merge_by_rank(Bytes pretoken, TokenBuffer& out) {
    constexpr uint32_t kNone = 0xffffffffu;
    static_assert(kNone == kNoRank);
    const auto size = static_cast<uint32_t>(pretoken.size());
    auto& ids = long_.ids;
    auto& results = long_.results;
    auto& previous = long_.previous;
    auto& next = long_.next;
    auto& ranks = long_.ranks;
    auto& positions = long_.positions;
    RankQueue& queue = long_.queue;
    ids.resize(size);
    previous.resize(size);
    next.resize(size);
    ranks.resize(size);
    results.resize(size);
    queue.clear();
    const auto set_pair = [&](uint32_t i, PairTable::Entry entry) {
        ranks[i] = entry.rank;
        results[i] = entry.result;
        if (entry.rank != kNoRank) queue.add(entry.rank, i);
        return entry.rank;
    };
    for (uint32_t i = 0; i < size; ++i) {
        ids[i] = vocabulary_.byte_token(pretoken[i]);
        previous[i] = i - 1;  // of the first one, kNone
        next[i] = i + 1;
    }
    for (uint32_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_merge(pretoken[i], pretoken[i + 1]));
    ranks[size - 1] = kNone;

    while (!queue.empty()) {
        const uint32_t rank = queue.take_lowest(positions);
        for (size_t k = 0; k < positions.size(); ++k) {
            const uint32_t i = positions[k];
            if (ranks[i] != rank) continue;
            const uint32_t merged = next[i];
            const uint32_t after = next[merged];
            ids[i] = results[i];
            next[i] = after;
            ranks[merged] = ranks[i] = kNone;
            uint32_t lowest_new = kNone;
            if (after < size) {
                previous[after] = i;
                lowest_new = set_pair(i, vocabulary_.find_merge(ids[i], ids[after]));
            }
            if (i > 0) {
                const uint32_t before = previous[i];
                lowest_new = std::min(lowest_new, set_pair(before, vocabulary_.find_merge(ids[before], ids[i])));
            }
            if (lowest_new < rank) {  // in a rank file a longer token may come first: then it is its turn
                while (++k < positions.size()) queue.add(rank, positions[k]);
            }
        }
    }
    TokenId* tokens = out.reserve(size);
    size_t count = 0;
    for (uint32_t i = 0; i < size; i = next[i]) tokens[count++] = ids[i];
    out.commit(count);
    if (size > kMaxKeptBytes) long_ = {};
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

Result<std::vector<uint8_t>> decode(const Vocabulary& vocabulary, std::span<const TokenId> tokens) {
    size_t num_bytes = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const TokenId id = tokens[i];
        if (id >= vocabulary.size() || vocabulary.token_bytes(id).empty()) {
            return invalid_data("token id " + std::to_string(id) + " at position " + std::to_string(i) +
                                " is not in the vocabulary of " + std::to_string(vocabulary.size()) +
                                " ids; decode with the tokenizer that encoded it");
        }
        num_bytes += vocabulary.token_bytes(id).size();
    }
    std::vector<uint8_t> out(num_bytes);
    size_t size = 0;
    for (const TokenId& token : tokens) {
        const TokenId id = token;  // read anew: another thread may have changed it, which must not write past the end
        const Bytes bytes = id < vocabulary.size() ? vocabulary.token_bytes(id) : Bytes();
        if (bytes.size() > num_bytes - size) return invalid_data("the token ids changed while they were decoded");
        std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(size));
        size += bytes.size();
    }
    out.resize(size);
    return out;
}

}  // namespace fastcompress::bpe
