// A model of bytes in integers: contexts of several orders, hashed; bit histories; logistic mixing. FORMAT.md specifies
// it as a frozen format, so that what one machine writes another reads.
//
// Two uses. Adaptive: it learns from every byte that it codes, and the decoder learns the same. Frozen: it has learned
// before, and never changes; every document (and every window, if it has windows) is predicted from its own bytes
// alone, and one frozen mixer serves many threads.
//
// What was tried and dropped: see benchmarks/LOG.md.
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
    uint32_t log2_table_bytes = 24;    // of bit histories: 12 to 30
    uint32_t log2_match_entries = 20;  // positions the match model remembers: 10 to 24; 0: no match model
    uint32_t window = 0;               // the context is emptied after so many bytes of a document; 0: never

    bool operator==(const MixerParams&) const = default;
};
Status check(const MixerParams& params);

class ByteModel;
struct Place;

// A copy has learned what the original has, costs O(table), and stands at the start of a document, its match model
// empty: as one read from the file of the original. A moved-from mixer may only be assigned to or destroyed. Const
// functions of one object may run in several threads at once.
class ContextMixer {
  public:
    // `params` are good: check() says so.
    explicit ContextMixer(const MixerParams& params);
    ContextMixer(const ContextMixer& other);
    ContextMixer(ContextMixer&& other) noexcept;
    ContextMixer& operator=(ContextMixer&& other) noexcept;
    ~ContextMixer();

    const MixerParams& params() const;
    bool is_frozen() const;
    uint64_t num_bytes() const;  // learned

    // Learns from bytes that go on where the last ones ended. O(n). Not if frozen.
    void update(Bytes data);
    // Ends the document: the context is empty again. What was learned stays.
    void reset();
    // Ends learning; the match model, which is a memory of one text, is given up, and so is the context.
    void freeze();

    // The frequencies of the byte after `context`, the end of a document (or window) whose start is the start of
    // `context`, without the match model: 256 numbers >= 1 whose sum is 2^precision, 8 <= precision <= 24.
    // O(|context|).
    void distribution(Bytes context, unsigned precision, std::span<uint32_t, 256> frequencies) const;

    // A document coded by this model: an adaptive one goes on learning, in a copy, so that the object
    // stays what it was and the decoder can be this object too. O(n), and O(table) for an adaptive one.
    std::vector<uint8_t> encode(Bytes data) const;
    // `num_bytes` bytes; a malformed message gives an error, or other bytes.
    Result<std::vector<uint8_t>> decode(Bytes message, size_t num_bytes) const;

    // The same as building blocks: learning (if not frozen), into a coder that may hold more, without reset(). An
    // adaptive mixer, which could not take back what it has learned, first reserves memory for the worst case, 16 bytes
    // of code per byte, of which little is ever touched. On std::bad_alloc mixer and coder are as before.
    void encode(Bytes data, arithmetic::RangeEncoder& encoder);
    // Writes out.size() bytes; stops with an error once decoder.ok() is false.
    Status decode(arithmetic::RangeDecoder& decoder, std::span<uint8_t> out);

    // The model as a file. parse(serialize()) is a copy.
    std::vector<uint8_t> serialize() const;
    static Result<ContextMixer> parse(Bytes blob);
    // Of the file.
    Sha256Digest fingerprint() const;

  private:
    friend class FrozenReader;
    std::unique_ptr<ByteModel> model_;
};

// Reads one document, or window, with a frozen mixer, a byte at a time: small, cheap to begin anew and to copy, so that
// bytes can be tried and taken back. The mixer must outlive it; any number may read at once.
class FrozenReader {
  public:
    explicit FrozenReader(const ContextMixer& frozen);
    FrozenReader(const FrozenReader& other);
    FrozenReader& operator=(const FrozenReader& other);
    ~FrozenReader();

    void encode(uint8_t byte, arithmetic::RangeEncoder& encoder);
    uint8_t decode(arithmetic::RangeDecoder& decoder);
    // Goes on as if the byte had been coded.
    void skip(uint8_t byte);

  private:
    ByteModel* model_;
    std::unique_ptr<Place> place_;
};

}  // namespace fastcompress::context_mixer
