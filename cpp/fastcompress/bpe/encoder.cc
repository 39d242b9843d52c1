#include "fastcompress/bpe/encoder.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {
namespace {

// Below this length scanning for the lowest rank beats the heap (measured: benchmarks/LOG.md, 2026-11-28).
constexpr size_t kMaxScanBytes = 96;

// Merges in place over an array of ids and an array of the ranks of the pairs (i, i + 1). O(n * merges), no allocation.
void merge_by_scan(const Vocabulary& vocabulary, Bytes pretoken, std::vector<TokenId>& out) {
    TokenId ids[kMaxScanBytes];
    PairTable::Entry pairs[kMaxScanBytes];  // pairs[i]: what ids[i], ids[i + 1] merge to
    size_t count = pretoken.size();
    for (size_t i = 0; i < count; ++i) ids[i] = vocabulary.byte_token(pretoken[i]);
    for (size_t i = 0; i + 1 < count; ++i) pairs[i] = vocabulary.find_merge(ids[i], ids[i + 1]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; ++i) {
            if (pairs[i].rank < pairs[best].rank) best = i;
        }
        if (pairs[best].rank == kNoRank) break;
        ids[best] = pairs[best].result;
        std::copy(ids + best + 2, ids + count, ids + best + 1);
        std::copy(pairs + best + 1, pairs + count - 1, pairs + best);
        --count;
        if (best > 0) pairs[best - 1] = vocabulary.find_merge(ids[best - 1], ids[best]);
        if (best + 1 < count) pairs[best] = vocabulary.find_merge(ids[best], ids[best + 1]);
    }
    out.insert(out.end(), ids, ids + count);
}

// Merges over a doubly linked list of positions, with a heap of candidate merges ordered by (rank, position). A
// candidate is stale when the pair at its position no longer merges to its result. O(n log n): each merge adds at most
// two candidates.
void merge_by_heap(const Vocabulary& vocabulary, Bytes pretoken, Scratch& scratch, std::vector<TokenId>& out) {
    constexpr uint32_t kNone = 0xffffffffu;
    const auto size = static_cast<uint32_t>(pretoken.size());
    std::vector<TokenId>& ids = scratch.ids;
    std::vector<uint32_t>& previous = scratch.previous;
    std::vector<uint32_t>& next = scratch.next;
    std::vector<Scratch::Candidate>& heap = scratch.heap;
    ids.resize(size);
    previous.resize(size);
    next.resize(size);
    heap.clear();
    const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    };
    for (uint32_t i = 0; i < size; ++i) {
        ids[i] = vocabulary.byte_token(pretoken[i]);
        previous[i] = i == 0 ? kNone : i - 1;
        next[i] = i + 1 == size ? kNone : i + 1;
    }
    for (uint32_t i = 0; i + 1 < size; ++i) {
        const PairTable::Entry entry = vocabulary.find_merge(ids[i], ids[i + 1]);
        if (entry.rank != kNoRank) heap.push_back({entry.rank, i, entry.result});
    }
    std::make_heap(heap.begin(), heap.end(), later);

    const auto consider = [&](uint32_t i) {
        const PairTable::Entry entry = vocabulary.find_merge(ids[i], ids[next[i]]);
        if (entry.rank == kNoRank) return;
        heap.push_back({entry.rank, i, entry.result});
        std::push_heap(heap.begin(), heap.end(), later);
    };
    while (!heap.empty()) {
        const Scratch::Candidate candidate = heap.front();
        std::pop_heap(heap.begin(), heap.end(), later);
        heap.pop_back();
        const uint32_t i = candidate.position;
        if (ids[i] == kNoToken || next[i] == kNone) continue;  // merged into its left neighbour, or the last one now
        if (vocabulary.find_merge(ids[i], ids[next[i]]).rank != candidate.rank) continue;
        ids[i] = candidate.result;
        ids[next[i]] = kNoToken;
        next[i] = next[next[i]];
        if (next[i] != kNone) {
            previous[next[i]] = i;
            consider(i);
        }
        if (previous[i] != kNone) consider(previous[i]);
    }
    for (uint32_t i = 0; i != kNone; i = next[i]) out.push_back(ids[i]);
}

// The number of threads that have enough to do to be worth starting.
size_t threads_worth(std::span<const Bytes> texts) {
    constexpr size_t kMinBytesPerThread = size_t{1} << 16;
    size_t num_bytes = 0;
    for (const Bytes text : texts) num_bytes += text.size();
    return 1 + num_bytes / kMinBytesPerThread;
}

}  // namespace

void encode_by_merges(const Vocabulary& vocabulary, Bytes pretoken, Scratch& scratch, std::vector<TokenId>& out) {
    if (pretoken.size() == 1) {
        out.push_back(vocabulary.byte_token(pretoken[0]));
    } else if (pretoken.size() <= kMaxScanBytes) {
        merge_by_scan(vocabulary, pretoken, out);
    } else {
        merge_by_heap(vocabulary, pretoken, scratch, out);
    }
}

void encode(const Vocabulary& vocabulary, Bytes text, Scratch& scratch, std::vector<TokenId>& out) {
    pretokenizer::for_each_pretoken(vocabulary.pattern(), text, [&](Bytes pretoken) {
        const TokenId whole = vocabulary.whole_pretoken(pretoken);
        if (whole != kNoToken) {
            out.push_back(whole);
        } else {
            encode_by_merges(vocabulary, pretoken, scratch, out);
        }
    });
}

EncodedBatch encode_batch(const Vocabulary& vocabulary, std::span<const Bytes> texts, size_t num_threads) {
    EncodedBatch batch;
    batch.offsets.assign(texts.size() + 1, 0);
    num_threads = std::min({num_threads, threads_worth(texts), std::max<size_t>(1, texts.size())});
    std::vector<std::vector<TokenId>> parts(num_threads);
    std::vector<size_t> part_begins(num_threads + 1, texts.size());
    const auto weight = [&](size_t i) { return texts[i].size() + 64; };  // 64: what an empty text costs, about
    parallel_parts(texts.size(), num_threads, weight, [&](size_t part, size_t begin, size_t end) {
        Scratch scratch;
        std::vector<TokenId>& out = parts[part];
        part_begins[part] = begin;
        for (size_t i = begin; i < end; ++i) {
            encode(vocabulary, texts[i], scratch, out);
            batch.offsets[i + 1] = out.size();  // within the part, made absolute below
        }
    });
    batch.tokens = std::move(parts[0]);
    for (size_t part = 1; part < parts.size(); ++part) {
        for (size_t i = part_begins[part]; i < part_begins[part + 1]; ++i) batch.offsets[i + 1] += batch.tokens.size();
        batch.tokens.insert(batch.tokens.end(), parts[part].begin(), parts[part].end());
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
