#include "fastcompress/bpe/encoder.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

// Below this length scanning for the lowest rank beats the queue (measured: benchmarks/LOG.md, 2026-11-28).
constexpr size_t kMaxScanBytes = 96;

// After a longer pretoken the buffers of merge_by_rank are given back.
constexpr size_t kMaxKeptBytes = size_t{1} << 16;

// Pretokens whose keys are computed before the first is looked up (measured: benchmarks/LOG.md).
constexpr size_t kBatch = 128;

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

// Two phases a batch of pretokens: first compute keys and ask for the cache lines they may be in, then look there. So
// the waits for memory overlap instead of adding up.
void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out) {
    ShortKey keys[kBatch];
    PretokenCache::Set* sets[kBatch];
    const uint8_t* const base = text.data() + found.begin();
    const std::span<const uint32_t> ends = found.ends();
    uint32_t key_begin = 0;
    uint32_t begin = 0;
    for (size_t first = 0; first < ends.size(); first += kBatch) {
        const size_t count = std::min(kBatch, ends.size() - first);
        const std::span<const uint32_t> batch = ends.subspan(first, count);
        // Sixteen bytes are read of each pretoken, which is too many for the last ones of a text: those are copied.
        size_t num_readable = count;
        while (num_readable > 0 &&
               text.size() - found.begin() - (num_readable > 1 ? batch[num_readable - 2] : begin) < 16) {
            --num_readable;
        }
        const uint32_t batch_begin = key_begin;
        uint32_t longest = 0;
        for (size_t i = 0; i < num_readable; ++i) {
            const uint32_t size = batch[i] - key_begin;
            keys[i] = ShortKey::of_readable(base + key_begin, size);
            sets[i] = cache_.prefetch(keys[i]);
            longest = std::max(longest, size);
            key_begin = batch[i];
        }
        for (size_t i = num_readable; i < count; ++i) {
            const uint32_t size = batch[i] - key_begin;
            if (size <= ShortKey::kMaxBytes) keys[i] = ShortKey::of({base + key_begin, size});
            sets[i] = cache_.prefetch(keys[i]);
            longest = std::max(longest, size);
            key_begin = batch[i];
        }
        if (longest > ShortKey::kMaxBytes) {
            uint32_t long_begin = batch_begin;
            for (size_t i = 0; i < count; ++i) {
                const size_t size = batch[i] - long_begin;
                if (size > ShortKey::kMaxBytes) {
                    keys[i] = ShortKey::of_long({base + long_begin, size});
                    sets[i] = cache_.prefetch(keys[i]);
                }
                long_begin = batch[i];
            }
        }

        constexpr size_t kIdsEach = PretokenCache::kMaxInlineIds;
        TokenId* tokens = out.reserve(kIdsEach * count);
        TokenId* committed = tokens;
        for (size_t i = 0; i < count; ++i) {
            const PretokenCache::Entry* entry = PretokenCache::find(sets[i], keys[i]);
            if (entry != nullptr && PretokenCache::is_inline(*entry)) [[likely]] {
                tokens += PretokenCache::copy_ids(*entry, tokens);
            } else {
                out.commit(static_cast<size_t>(tokens - committed));
                const size_t size = (first + i + 1 == ends.size() ? found.end() - found.begin() : batch[i]) - begin;
                look_up({base + begin, size}, keys[i], sets[i], out);
                committed = tokens = out.reserve(kIdsEach * count);
            }
            begin = batch[i];
        }
        out.commit(static_cast<size_t>(tokens - committed));
    }
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
    const TokenId whole =
        pretoken.size() > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(pretoken) : vocabulary_.whole_pretoken(key);
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

}  // namespace fastcompress::bpe
