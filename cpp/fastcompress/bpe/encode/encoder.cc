#include "fastcompress/bpe/encode/encoder.h"

#include <algorithm>

namespace fastcompress::bpe {

// The first tokens of a vocabulary are the most frequent ones: adding them side by side costs less than finding one
// after the other as text comes.
void Encoder::reserve_large_cache() {
    constexpr size_t kNumEntries = size_t{1} << 17;
    constexpr TokenId kNumSeeds = 1 << 15;
    constexpr size_t kAhead = 16;
    if (has_large_cache_) return;
    cache_.make_room_for(kNumEntries);
    has_large_cache_ = true;
    struct Seed {
        ShortKey key;
        PretokenCache::Set* set;
    };
    std::array<Seed, kAhead> seeds;
    size_t num_seeds = 0;
    const auto insert = [&](size_t i) {
        const Seed& seed = seeds[i % kAhead];
        const TokenId whole = vocabulary_.whole_pretoken(seed.key);
        if (whole != kNoToken) cache_.insert(seed.set, seed.key, {}, {&whole, 1});
    };
    for (TokenId id = 0; id < std::min<size_t>(kNumSeeds, vocabulary_.size()); ++id) {
        const Bytes bytes = vocabulary_.token_bytes(id);
        if (bytes.empty() || bytes.size() > ShortKey::kMaxBytes || !vocabulary_.is_ordinary(id)) continue;
        if (num_seeds >= kAhead) insert(num_seeds - kAhead);
        const ShortKey key = ShortKey::of_readable(bytes.data(), bytes.size());
        vocabulary_.prefetch_whole_pretoken(key);
        seeds[num_seeds++ % kAhead] = {key, cache_.prefetch(key)};
    }
    for (size_t i = num_seeds - std::min(num_seeds, kAhead); i < num_seeds; ++i) insert(i);
}

void Encoder::encode(Bytes text, TokenBuffer& out) {
    uint64_t end;
    encode(std::span(&text, 1), out, &end);
}

void Encoder::encode(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends) {
    // With this much text a cache that is large from the start beats one that grows step by step.
    constexpr size_t kManyBytes = size_t{1} << 19;
    if (!has_large_cache_) {
        for (const Bytes text : texts) num_bytes_seen_ += text.size();
        if (num_bytes_seen_ >= kManyBytes) reserve_large_cache();
    }
    out.append_all_or_none([&] { encode_texts(texts, out, ends); });
}

void Encoder::encode_texts(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends) {
    // Enough text for its unknown pretokens to keep all lanes busy, and little enough for its ids to stay in the cache.
    constexpr size_t kChunkBytes = size_t{1} << 16;
    begin_chunk();
    size_t num_bytes = 0;
    const auto add_to_chunk = [&](size_t count) {
        num_bytes += count;
        if (num_bytes < kChunkBytes) return;
        ends = finish_chunk(out, ends);
        num_bytes = 0;
    };
    for (const Bytes text : texts) {
        pretokenizer::PretokenFinder finder(vocabulary_.pattern(), text);
        while (finder.next()) {
            encode_found(finder, text);
            add_to_chunk(finder.end() - finder.begin());
        }
        insertions_.push_back({static_cast<uint32_t>(found_.size()), Insertion::kTextEnd, 0});
        add_to_chunk(sizeof(Insertion));  // so that chunks of short or empty texts end, too
    }
    finish_chunk(out, ends);
}

void Encoder::encode_pretoken(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.empty()) return;
    const ShortKey key = pretoken.size() > ShortKey::kMaxBytes ? ShortKey::of_long(pretoken) : ShortKey::of(pretoken);
    out.append_all_or_none([&] {
        look_up(pretoken, key, cache_.prefetch(key), out);
        cache_.grow_if_crowded();
    });
}

TokenId Encoder::find_whole(Bytes pretoken, ShortKey key) const {
    return pretoken.size() > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(pretoken)
                                                 : vocabulary_.whole_pretoken(key);
}

void Encoder::look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out) {
    const PretokenCache::Entry* entry = cache_.find(set, key);
    if (entry != nullptr && cache_.append_ids(*entry, pretoken, out)) return;
    encode_unknown(pretoken, key, set, out);
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
    const auto merge = [&](auto& lanes) {
        lanes.merge(
            1, [&](size_t) { return pretoken; },
            [&](size_t, std::span<const TokenId> ids, std::span<const uint8_t>) { out.append(ids); });
    };
    if (pretoken.size() <= kShortLaneBytes) return merge(std::get<0>(lanes_));
    if (pretoken.size() <= kMiddleLaneBytes) return merge(std::get<1>(lanes_));
    if (pretoken.size() <= kMaxLaneBytes) return merge(std::get<2>(lanes_));
    long_.merge(pretoken, out);
}

}  // namespace fastcompress::bpe
