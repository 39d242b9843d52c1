// Encoding many texts, or a long one, on several threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/unicode/stored_text.h"

namespace fastcompress::bpe {

// Encoders to be borrowed, so that what one call has seen serves the next; it keeps at most one a core, and readies the
// first for large texts at once, the others (of calls that come while others are under way) when they have seen some.
// Thread-safe. A child process after a fork may use it, whatever the other threads of its parent were doing: nobody
// ever waits for the lock.
class EncoderPool {
  public:
    explicit EncoderPool(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

    // Calls body(encoder) with an encoder of the pool, or a new one. If the one that was given to this `worker` last is
    // there, it is that one: it has seen the like of what comes.
    template <class Body>
    void with_encoder(size_t worker, const Body& body) {
        std::unique_ptr<Encoder> encoder = take(worker);
        body(*encoder);
        give_back(worker, std::move(encoder));
    }

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
    bool has_made_one_ = false;
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
