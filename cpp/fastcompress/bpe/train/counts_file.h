// Reading and writing counts of pretokens, sorted, one at a time: FORMAT.md says what each byte means.
//
// The same format serves files that users keep, and the runs that counting spills to disk.
#pragma once

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/common/status.h"

namespace fastcompress::bpe {

using CountsEntry = PretokenCounts::Entry;

// Entries in ascending order of pretokens, each distinct one once.
class SortedCounts {
  public:
    virtual ~SortedCounts() = default;
    // The next entry, valid until the call after this one; nothing at the end or after an error (see status()).
    virtual std::optional<CountsEntry> next() = 0;
    virtual Status status() const { return {}; }
};

// Where bytes go. False: they could not be written.
using ByteSink = std::function<bool(Bytes)>;

class CountsWriter {
  public:
    CountsWriter(ByteSink sink, std::string_view pattern);
    // Entries in ascending order.
    void add(const CountsEntry& entry);
    // False if anything could not be written.
    bool finish();

  private:
    void u32(uint32_t value);
    void varint(uint64_t value);
    void flush();

    ByteSink sink_;
    GrowingArray<uint8_t> buffer_;
    Sha256 hash_;
    uint64_t num_entries_ = 0;
    bool ok_ = true;
};

// Reads one file, or bytes in memory, and checks everything: order, ranges, the number of entries, the checksum. Entries
// come before the checksum is known to be right, so nothing made of them may be kept when status() says otherwise.
class CountsReader : public SortedCounts {
  public:
    static std::unique_ptr<CountsReader> open(const std::string& path);
    static std::unique_ptr<CountsReader> of(Bytes blob);  // which must outlive it

    std::optional<CountsEntry> next() override;
    Status status() const override { return status_; }
    // Of the header; empty if it could not be read.
    const std::string& pattern() const { return pattern_; }

  private:
    CountsReader() = default;
    void read_header();
    bool fill(size_t count);
    Bytes take(size_t count);
    std::optional<uint64_t> varint();
    std::optional<CountsEntry> fail(Status status);
    std::optional<CountsEntry> read_end();

    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file_;
    std::vector<uint8_t> buffer_;
    Bytes unread_;  // of buffer_, or of the blob
    Sha256 hash_;
    std::string pattern_;
    std::vector<uint8_t> pretoken_, previous_;
    uint64_t num_entries_ = 0;
    bool at_end_ = false;
    Status status_;
};

// Several sources as one: each distinct pretoken with the sum of its counts. O(log sources) an entry. Its status is the
// first error of a source.
class MergedCounts : public SortedCounts {
  public:
    explicit MergedCounts(std::vector<std::unique_ptr<SortedCounts>> sources);
    std::optional<CountsEntry> next() override;
    Status status() const override { return status_; }

  private:
    struct Head {
        CountsEntry entry;
        SortedCounts* source;
    };
    static bool comes_later(const Head& a, const Head& b) {
        return as_chars(a.entry.pretoken) > as_chars(b.entry.pretoken);
    }
    void advance(SortedCounts* source);

    std::vector<std::unique_ptr<SortedCounts>> sources_;
    std::vector<Head> heads_;  // a heap, the least pretoken on top
    std::vector<uint8_t> pretoken_;
    Status status_;
};

}  // namespace fastcompress::bpe
