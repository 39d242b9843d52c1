#include "fastcompress/bpe/encode/batch_encoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fastcompress/common/parallel.h"
#include "fastcompress/pretokenizer/text_cut.h"

namespace fastcompress::bpe {
namespace {

// A thread with less to do is not worth starting.
constexpr size_t kMinBytesPerThread = size_t{1} << 16;
// So many pieces that no thread waits long for another, and each large enough to be encoded as fast as all of it.
constexpr size_t kChunksPerThread = 16;
constexpr size_t kMaxChunkBytes = size_t{1} << 22;

// So much may become UTF-8 at once, a quarter of it if it is mostly ASCII: it stays in the second-level cache.
constexpr size_t kBytesAtOnce = size_t{1} << 19;

size_t total_bytes(std::span<const unicode::StoredText> texts) {
    size_t num_bytes = 0;
    for (const unicode::StoredText& text : texts) num_bytes += text.memory.size();
    return num_bytes;
}

void encode_texts(Encoder& encoder, std::span<const unicode::StoredText> texts, const TextMethod& method,
                  unicode::Utf8Buffer& buffer, TokenBuffer& out, uint64_t* ends) {
    for (size_t begin = 0; begin < texts.size();) {
        size_t end = begin;
        for (size_t num_bytes = 0; end < texts.size() && num_bytes < kBytesAtOnce; ++end) {
            num_bytes += texts[end].max_utf8_bytes();
        }
        method.encode_texts(encoder, buffer.read(texts.subspan(begin, end - begin)), out, ends + begin);
        begin = end;
    }
}

// Texts, the long ones in parts of about `part_bytes`; text i ends with part ends[i] - 1.
struct Parts {
    std::vector<unicode::StoredText> parts;
    std::vector<size_t> ends;
};

Parts cut_texts(std::span<const unicode::StoredText> texts, size_t part_bytes) {
    Parts cut;
    for (const unicode::StoredText& stored : texts) {
        if (stored.char_bytes != 0) {
            cut.parts.push_back(stored);
            cut.ends.push_back(cut.parts.size());
            continue;
        }
        Bytes text = stored.memory;
        do {
            const size_t end = text.size() < 2 * part_bytes ? text.size() : pretokenizer::next_cut(text, part_bytes);
            cut.parts.push_back(text.first(end));
            text = text.subspan(end);
        } while (!text.empty());
        cut.ends.push_back(cut.parts.size());
    }
    return cut;
}

// Parts that one thread encodes one after the other, and where their tokens are.
struct Chunk {
    size_t first, end;  // parts
    size_t buffer = 0;
    size_t tokens_begin = 0;
    size_t tokens_end = 0;
    std::span<const unicode::StoredText> parts(std::span<const unicode::StoredText> all) const {
        return all.subspan(first, end - first);
    }
};

std::vector<Chunk> make_chunks(std::span<const unicode::StoredText> parts, size_t chunk_bytes) {
    constexpr size_t kEmptyText = 64;  // what it costs, about
    std::vector<Chunk> chunks;
    for (size_t begin = 0; begin < parts.size();) {
        size_t end = begin;
        for (size_t cost = 0; end < parts.size() && cost < chunk_bytes; ++end)
            cost += parts[end].memory.size() + kEmptyText;
        chunks.push_back({begin, end});
        begin = end;
    }
    return chunks;
}

}  // namespace

// Room for all idle encoders from the start, so that giving one back cannot fail while the lock is held.
EncoderPool::EncoderPool(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    idle_.reserve(default_num_threads());
}

std::unique_ptr<Encoder> EncoderPool::take(size_t worker) {
    std::unique_ptr<Encoder> encoder;
    bool is_first = false;
    if (!busy_.test_and_set(std::memory_order_acquire)) {
        auto found = std::ranges::find(idle_, worker, &Idle::worker);
        // Another worker's only if that one will not come for it, as far as can be seen.
        if (found == idle_.end() && !idle_.empty() && idle_.size() >= default_num_threads())
            found = std::prev(idle_.end());
        if (found != idle_.end()) {
            encoder = std::move(found->encoder);
            idle_.erase(found);
        }
        is_first = !has_made_one_.exchange(true, std::memory_order_relaxed);
        busy_.clear(std::memory_order_release);
    }
    if (!encoder) encoder = std::make_unique<Encoder>(vocabulary_);
    if (is_first) encoder->reserve_large_cache();
    return encoder;
}

void EncoderPool::give_back(size_t worker, std::unique_ptr<Encoder> encoder) {
    if (busy_.test_and_set(std::memory_order_acquire)) return;  // another thread holds the lock: drop this encoder
    if (idle_.size() < idle_.capacity()) idle_.push_back({worker, std::move(encoder)});
    busy_.clear(std::memory_order_release);
}

EncodedBatch encode_batch(EncoderPool& pool, std::span<const unicode::StoredText> texts, size_t num_threads,
                          const TextMethod& method) {
    const size_t num_bytes = total_bytes(texts);
    num_threads = std::min(num_threads, 1 + num_bytes / kMinBytesPerThread);
    const size_t chunk_bytes =
        std::clamp(num_bytes / (kChunksPerThread * num_threads), kMinBytesPerThread, kMaxChunkBytes);
    const bool is_cut = method.may_cut && num_threads > 1;
    const Parts cut = is_cut ? cut_texts(texts, chunk_bytes) : Parts{};
    const std::span<const unicode::StoredText> parts = is_cut ? std::span<const unicode::StoredText>(cut.parts) : texts;
    std::vector<Chunk> chunks = make_chunks(parts, num_threads > 1 ? chunk_bytes : SIZE_MAX);
    num_threads = std::min(num_threads, std::max<size_t>(1, chunks.size()));
    const auto share_begin = [&](size_t thread) { return WorkShares::begin(chunks.size(), num_threads, thread); };

    std::vector<uint64_t> ends(parts.size());  // of each part's tokens, in the buffer they are in
    // Of each thread two: its own share's tokens, and those of what it took from others.
    std::vector<TokenBuffer> buffers(2 * num_threads);
    WorkShares shares(chunks.size(), num_threads);
    const auto equal = [](size_t) { return size_t{1}; };
    parallel_parts(num_threads, num_threads, equal, [&](size_t thread, size_t, size_t) {
        size_t own_bytes = 0;
        for (size_t i = share_begin(thread); i < share_begin(thread + 1); ++i)
            own_bytes += total_bytes(chunks[i].parts(parts));
        // Not among the other threads' from the beginning: they would share a cache line.
        TokenBuffer own(expected_ids(own_bytes));
        TokenBuffer others;
        unicode::Utf8Buffer utf8;
        pool.with_encoder(thread, [&](Encoder& encoder) {
            while (const std::optional<WorkShares::Item> item = shares.next(thread)) {
                Chunk& chunk = chunks[item->index];
                TokenBuffer& out = item->is_own ? own : others;
                chunk.buffer = 2 * thread + (item->is_own ? 0 : 1);
                chunk.tokens_begin = out.size();
                encode_texts(encoder, chunk.parts(parts), method, utf8, out, ends.data() + chunk.first);
                chunk.tokens_end = out.size();
            }
        });
        buffers[2 * thread] = std::move(own);
        buffers[2 * thread + 1] = std::move(others);
    });

    EncodedBatch batch;
    size_t num_tokens = 0;
    for (const TokenBuffer& buffer : buffers) num_tokens += buffer.size();
    batch.tokens = std::move(buffers[0]);  // the first chunks, in their places
    batch.tokens.reserve(num_tokens - batch.tokens.size());
    for (size_t thread = 0; thread < num_threads; ++thread) {
        for (size_t k = share_begin(thread); k < share_begin(thread + 1); ++k) {
            const Chunk& chunk = chunks[k];
            if (chunk.buffer == 0) continue;
            for (size_t i = chunk.first; i < chunk.end; ++i) ends[i] += batch.tokens.size() - chunk.tokens_begin;
            batch.tokens.append(
                buffers[chunk.buffer].tokens().subspan(chunk.tokens_begin, chunk.tokens_end - chunk.tokens_begin));
        }
        buffers[2 * thread] = TokenBuffer();
    }
    batch.offsets.assign(texts.size() + 1, 0);
    for (size_t i = 0; i < texts.size(); ++i) batch.offsets[i + 1] = ends[is_cut ? cut.ends[i] - 1 : i];
    return batch;
}

}  // namespace fastcompress::bpe
