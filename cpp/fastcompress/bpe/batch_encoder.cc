#include "fastcompress/bpe/batch_encoder.h"

#include <algorithm>
#include <utility>

#include "fastcompress/common/parallel.h"
#include "fastcompress/pretokenizer/text_cut.h"

namespace fastcompress::bpe {
namespace {

// A thread with less to do is not worth starting.
constexpr size_t kMinBytesPerThread = size_t{1} << 16;

// So much may become UTF-8 at once, a quarter of it if it is mostly ASCII: it stays in the second-level cache.
constexpr size_t kBytesAtOnce = size_t{1} << 19;

size_t total_bytes(std::span<const StoredText> texts) {
    size_t num_bytes = 0;
    for (const StoredText& text : texts) num_bytes += text.memory.size();
    return num_bytes;
}

void encode_texts(Encoder& encoder, std::span<const StoredText> texts, const TextMethod& method, TokenBuffer& out,
                  uint64_t* ends) {
    Utf8Buffer buffer;
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
    std::vector<StoredText> parts;
    std::vector<size_t> ends;
};

Parts cut_texts(std::span<const StoredText> texts, size_t part_bytes) {
    Parts cut;
    for (const StoredText& stored : texts) {
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

}  // namespace

std::unique_ptr<Encoder> EncoderPool::take(size_t worker) {
    std::unique_ptr<Encoder> encoder;
    bool is_first = false;
    if (!busy_.test_and_set(std::memory_order_acquire)) {
        auto found = std::ranges::find(idle_, worker, &Idle::worker);
        // Another worker's only if that one will not come for it, as far as can be seen.
        if (found == idle_.end() && idle_.size() == default_num_threads()) found = std::prev(idle_.end());
        if (found != idle_.end()) {
            encoder = std::move(found->encoder);
            idle_.erase(found);
        }
        is_first = !std::exchange(has_made_one_, true);
        busy_.clear(std::memory_order_release);
    }
    if (!encoder) encoder = std::make_unique<Encoder>(vocabulary_);
    if (is_first) encoder->prepare_for_much();
    return encoder;
}

void EncoderPool::give_back(size_t worker, std::unique_ptr<Encoder> encoder) {
    if (busy_.test_and_set(std::memory_order_acquire)) return;  // somebody is at it: let this one go
    if (idle_.size() < default_num_threads()) idle_.push_back({worker, std::move(encoder)});
    busy_.clear(std::memory_order_release);
}

EncodedBatch encode_batch(EncoderPool& pool, std::span<const StoredText> texts, size_t num_threads,
                          const TextMethod& method) {
    const size_t num_bytes = total_bytes(texts);
    num_threads = std::min(num_threads, 1 + num_bytes / kMinBytesPerThread);
    // Cut so that no part keeps the others waiting for long.
    const bool is_cut = method.may_cut && num_threads > 1;
    const Parts cut = is_cut ? cut_texts(texts, std::max(kMinBytesPerThread, num_bytes / (8 * num_threads))) : Parts{};
    const std::span<const StoredText> parts = is_cut ? std::span<const StoredText>(cut.parts) : texts;

    num_threads = std::min(num_threads, std::max<size_t>(1, parts.size()));
    std::vector<uint64_t> ends(parts.size());  // of each part's tokens, among those of its thread
    std::vector<TokenBuffer> buffers(num_threads);
    std::vector<size_t> begins(num_threads + 1, parts.size());                  // the first part of each thread
    const auto weight = [&](size_t i) { return parts[i].memory.size() + 64; };  // 64: what an empty text costs, about
    parallel_parts(parts.size(), num_threads, weight, [&](size_t thread, size_t begin, size_t end) {
        begins[thread] = begin;
        // Not among the other threads' from the beginning: they would share a cache line.
        TokenBuffer out(expected_ids(total_bytes(parts.subspan(begin, end - begin))));
        pool.with_encoder(thread, [&](Encoder& encoder) {
            encode_texts(encoder, parts.subspan(begin, end - begin), method, out, ends.data() + begin);
        });
        buffers[thread] = std::move(out);
    });

    EncodedBatch batch;
    batch.tokens = std::move(buffers[0]);
    for (size_t thread = 1; thread < buffers.size(); ++thread) {
        for (size_t i = begins[thread]; i < begins[thread + 1]; ++i) ends[i] += batch.tokens.size();
        batch.tokens.append(buffers[thread].tokens());
        buffers[thread] = TokenBuffer();
    }
    batch.offsets.assign(texts.size() + 1, 0);
    for (size_t i = 0; i < texts.size(); ++i) batch.offsets[i + 1] = ends[is_cut ? cut.ends[i] - 1 : i];
    return batch;
}

}  // namespace fastcompress::bpe
