// Encoding many texts, or a long one, on several threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/unicode/stored_text.h"

namespace fastcompress::bpe {

// A pool of encoders, so that later calls reuse the caches of earlier ones. Keeps at most one encoder per core. The
// first one gets its large cache at once; those created later, for concurrent calls, once they have seen enough text.
// Thread-safe, also in a child process after a fork, whatever the other threads of the parent were doing: no thread ever
// blocks on the lock.
class EncoderPool {
  public:
    explicit EncoderPool(const Vocabulary& vocabulary);

    // Calls body(encoder) with an encoder of the pool, or a new one; with the one that this `worker` had last if it is
    // idle, since its cache suits what comes. If `body` throws, that encoder leaves the pool.
    template <class Body>
    void with_encoder(size_t worker, const Body& body) {
        std::unique_ptr<Encoder> encoder = take(worker);
        body(*encoder);
        give_back(worker, std::move(encoder));
    }
    // Whether an encoder was made already: the first one takes milliseconds, since it gets its large cache.
    bool is_warm() const { return has_made_one_.load(std::memory_order_relaxed); }

  private:
    struct Idle {
        size_t worker;
        std::unique_ptr<Encoder> encoder;
    };
    std::unique_ptr<Encoder> take(size_t worker);
    void give_back(size_t worker, std::unique_ptr<Encoder> encoder);

    const Vocabulary& vocabulary_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::vector<Idle> idle_;
    std::atomic<bool> has_made_one_ = false;
};

// The number of ids to make room for: one per byte of a short text, and one for every two bytes of a long one, since a
// block of megabytes has room to spare (large_blocks.h) and growing copies. (An id takes about four bytes in English,
// and 1.6 where a vocabulary knows little of a language.)
inline size_t expected_ids(size_t num_bytes) {
    constexpr size_t kManyBytes = size_t{1} << 22;
    return (num_bytes < kManyBytes ? num_bytes : num_bytes / 2) + 16;
}

// texts[i] is tokens[offsets[i], offsets[i + 1]).
struct EncodedBatch {
    TokenBuffer tokens;
    std::vector<uint64_t> offsets;  // texts.size() + 1
};

// How texts are encoded: encode_texts(encoder, texts, out, ends) does what Encoder::encode of several texts does, on
// several threads at once. `may_cut`: it is that, with a named pattern, so that a long text may be encoded in parts
// (text_cut.h).
struct TextMethod {
    std::function<void(Encoder&, std::span<const Bytes>, TokenBuffer&, uint64_t*)> encode_texts;
    bool may_cut = false;
};

// On up to num_threads threads; their number changes nothing. A text that is not UTF-8 is never cut. O(bytes).
EncodedBatch encode_batch(EncoderPool& pool, std::span<const unicode::StoredText> texts, size_t num_threads,
                          const TextMethod& method);

}  // namespace fastcompress::bpe
