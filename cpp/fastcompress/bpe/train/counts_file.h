// Reads and writes sorted counts of pretokens, one at a time (FORMAT.md, "The file of pretoken counts").
//
// The same format serves files that users keep, and the sorted runs that counting spills to disk.
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

// Entries in ascending order of pretokens, without repetitions.
class SortedCounts {
  public:
    virtual ~SortedCounts() = default;
    // Returns the next entry, which is valid until the next call; nullopt at the end or after an error (see status()).
    virtual std::optional<CountsEntry> next() = 0;
    virtual Status status() const { return {}; }
};

// Takes bytes that are written. Returns false if they could not be written.
using ByteSink = std::function<bool(Bytes)>;

class CountsWriter {
  public:
    CountsWriter(ByteSink sink, std::string_view pattern);
    // Adds an entry. Requires ascending order.
    void add(const CountsEntry& entry);
    // Completes the file. Returns false if anything could not be written.
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

// Reads one file, or bytes in memory, and checks everything: order, ranges, the number of entries, the checksum.
// Entries are returned before the checksum is verified, so the caller must discard the results if status() is an error.
class CountsReader : public SortedCounts {
  public:
    static std::unique_ptr<CountsReader> open(const std::string& path);
    static std::unique_ptr<CountsReader> from_bytes(Bytes blob);  // the blob must outlive the reader

    std::optional<CountsEntry> next() override;
    Status status() const override { return status_; }
    // The pattern in the header; empty if it could not be read.
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
    Bytes unread_;  // the rest of buffer_, or of the blob
    Sha256 hash_;
    std::string pattern_;
    std::vector<uint8_t> pretoken_, previous_;
    uint64_t num_entries_ = 0;
    bool at_end_ = false;
    Status status_;
};

// Merges several sources: each distinct pretoken with the sum of its counts. O(log sources) per entry. Its status is
// the first error of a source.
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
    std::vector<Head> heads_;  // a heap with the smallest pretoken on top
    std::vector<uint8_t> pretoken_;
    Status status_;
};

}  // namespace fastcompress::bpe
