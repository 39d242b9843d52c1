// The context mixer: an integer model of bytes, with hashed contexts of several orders, bit histories and logistic
// mixing. FORMAT.md specifies it, so that one machine reads what another wrote; byte_model.h follows one bit through
// it.
//
// A mixer is used in one of two ways. An adaptive one learns from every byte that it codes, and the decoder learns the
// same. A frozen one has learned before and never changes: every document (and every window, if it has windows) is
// predicted from its own bytes alone, and one frozen mixer serves many threads.
//
// benchmarks/LOG.md lists what was tried and dropped.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/common/status.h"

namespace fastcompress::context_mixer {

struct MixerParams {
    uint32_t log2_table_bytes = 24;    // size of the table of bit histories: 12 to 30
    uint32_t log2_match_entries = 20;  // positions that the match model stores: 10 to 24; 0: no match model
    uint32_t reset_interval = 0;  // the context is emptied after every `reset_interval` bytes of a document; 0: never

    bool operator==(const MixerParams&) const = default;
};
Status check(const MixerParams& params);

class ByteModel;
struct DocumentState;

// A copy has learned what the original has, and is at the start of a document with an empty match model, as if it were
// read from the original's file. Copying costs O(table). A moved-from mixer may only be assigned to or destroyed. Const
// functions of one object may run in several threads at once.
class ContextMixer {
  public:
    // Requires params that check() accepts.
    explicit ContextMixer(const MixerParams& params);
    ContextMixer(const ContextMixer& other);
    ContextMixer(ContextMixer&& other) noexcept;
    ContextMixer& operator=(ContextMixer&& other) noexcept;
    ~ContextMixer();

    const MixerParams& params() const;
    bool is_frozen() const;
    uint64_t num_bytes() const;  // number of bytes learned

    // Learns from the next bytes of the current document. O(n). Requires a mixer that is not frozen.
    void update(Bytes data);
    // Ends the document: the context is empty again, and what was learned stays.
    void reset();
    // Ends learning, and drops the context and the match model, which is a memory of one text.
    void freeze();

    // Writes the frequencies of the byte that follows `context`, which begins where the document (or window) does: 256
    // numbers >= 1 whose sum is 2^precision, 8 <= precision <= 24. Does not use the match model. O(|context|).
    void distribution(Bytes context, unsigned precision, std::span<uint32_t, 256> frequencies) const;

    // Encodes a document. An adaptive mixer learns while it does, in a copy, so the object stays as it was and can
    // decode, too. O(n), plus O(table) for an adaptive mixer.
    std::vector<uint8_t> encode(Bytes data) const;
    // Decodes `num_bytes` bytes. A code that is damaged gives an error or other bytes.
    Result<std::vector<uint8_t>> decode(Bytes code, size_t num_bytes) const;

    // The same as building blocks: learning (if not frozen), into a coder that may hold more, without reset(). An
    // adaptive mixer, which could not take back what it has learned, first reserves memory for the worst case, 16 bytes
    // of code per byte, of which little is ever touched. On std::bad_alloc mixer and coder are as before.
    void encode(Bytes data, arithmetic::RangeEncoder& encoder);
    // Writes out.size() bytes; stops with an error once decoder.ok() is false.
    Status decode(arithmetic::RangeDecoder& decoder, std::span<uint8_t> out);

    // Returns the model as a file. parse(serialize()) is a copy.
    std::vector<uint8_t> serialize() const;
    static Result<ContextMixer> parse(Bytes blob);
    // Returns the SHA-256 at the end of the file.
    Sha256Digest fingerprint() const;

  private:
    friend class FrozenReader;
    std::unique_ptr<ByteModel> model_;
};

// Codes one document or window with a frozen mixer, one byte at a time. Small, and cheap to make and to copy, so that
// bytes can be tried and undone. The mixer must outlive it; any number of readers may share one.
class FrozenReader {
  public:
    explicit FrozenReader(const ContextMixer& frozen);
    FrozenReader(const FrozenReader& other);
    FrozenReader& operator=(const FrozenReader& other);
    ~FrozenReader();

    void encode(uint8_t byte, arithmetic::RangeEncoder& encoder);
    uint8_t decode(arithmetic::RangeDecoder& decoder);
    // Continues as if the byte had been coded.
    void skip(uint8_t byte);

  private:
    ByteModel* model_;
    std::unique_ptr<DocumentState> document_;
};

}  // namespace fastcompress::context_mixer
