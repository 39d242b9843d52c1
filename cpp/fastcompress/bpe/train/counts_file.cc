#include "fastcompress/bpe/train/counts_file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace fastcompress::bpe {
namespace {

constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'C', 'N', 'T', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = 32;
constexpr size_t kMaxPatternBytes = size_t{1} << 16;
constexpr size_t kBufferBytes = size_t{1} << 16;

}  // namespace

CountsWriter::CountsWriter(ByteSink sink, std::string_view pattern) : sink_(std::move(sink)) {
    buffer_.append(kMagic);
    u32(kVersion);
    u32(static_cast<uint32_t>(pattern.size()));
    buffer_.append(as_bytes(pattern));
}

void CountsWriter::add(const CountsEntry& entry) {
    varint(entry.pretoken.size());
    varint(entry.count);
    buffer_.append(entry.pretoken);
    ++num_entries_;
    if (buffer_.size() >= kBufferBytes) flush();
}

bool CountsWriter::finish() {
    varint(0);
    varint(num_entries_);
    flush();
    return ok_ && sink_(hash_.finish());
}

void CountsWriter::u32(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) buffer_.push_back(static_cast<uint8_t>(value >> shift));
}

void CountsWriter::varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) buffer_.push_back(static_cast<uint8_t>(value | 0x80));
    buffer_.push_back(static_cast<uint8_t>(value));
}

void CountsWriter::flush() {
    const Bytes bytes(buffer_.data(), buffer_.size());
    hash_.update(bytes);
    ok_ = ok_ && sink_(bytes);
    buffer_.shrink(0);
}

std::unique_ptr<CountsReader> CountsReader::open(const std::string& path) {
    std::unique_ptr<CountsReader> reader(new CountsReader());
    reader->file_.reset(std::fopen(path.c_str(), "rb"));
    if (!reader->file_) {
        reader->fail(file_failed(path + ": cannot be read (" + std::generic_category().message(errno) + ")"));
    } else {
        std::setvbuf(reader->file_.get(), nullptr, _IONBF, 0);  // buffer_ is the buffer
        reader->read_header();
    }
    return reader;
}

std::unique_ptr<CountsReader> CountsReader::from_bytes(Bytes blob) {
    std::unique_ptr<CountsReader> reader(new CountsReader());
    reader->unread_ = blob;
    reader->read_header();
    return reader;
}

// Makes at least `count` bytes available in unread_. Returns false if the file has fewer.
bool CountsReader::fill(size_t count) {
    if (unread_.size() >= count) return true;
    if (!file_) return false;
    std::vector<uint8_t> larger(unread_.begin(), unread_.end());
    // One block at a time, so that a wrong length cannot allocate more memory than the file has bytes.
    while (larger.size() < count) {
        const size_t had = larger.size();
        larger.resize(had + kBufferBytes);
        const size_t got = std::fread(larger.data() + had, 1, kBufferBytes, file_.get());
        larger.resize(had + got);
        if (got == 0) break;
    }
    buffer_ = std::move(larger);
    unread_ = buffer_;
    return unread_.size() >= count;
}

// Returns the next `count` bytes, or fewer at the end of the file.
Bytes CountsReader::take(size_t count) {
    fill(count);
    const Bytes taken = unread_.first(std::min(count, unread_.size()));
    unread_ = unread_.subspan(taken.size());
    hash_.update(taken);
    return taken;
}

std::optional<uint64_t> CountsReader::varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        const Bytes byte = take(1);
        if (byte.empty()) return std::nullopt;
        value |= uint64_t{byte[0] & 0x7fu} << shift;
        if (byte[0] < 0x80)
            return byte[0] == 0 && shift > 0 ? std::nullopt : std::optional(value);  // each value has one encoding
    }
    return std::nullopt;
}

std::optional<CountsEntry> CountsReader::fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    at_end_ = true;
    return std::nullopt;
}

void CountsReader::read_header() {
    if (!std::ranges::equal(take(sizeof kMagic), kMagic)) {
        fail(malformed("not a file of pretoken counts (its first eight bytes are not 89 46 43 43 4E 54 0D 0A)"));
        return;
    }
    ByteReader fields(take(8));
    const uint32_t version = fields.u32();
    if (fields.ok() && version != kVersion) {
        fail(malformed("pretoken counts of format version " + std::to_string(version) + "; this build reads version " +
                       std::to_string(kVersion) + ": update fastcompress"));
        return;
    }
    const uint32_t size = fields.u32();
    const Bytes pattern = take(std::min<size_t>(size, kMaxPatternBytes));
    if (!fields.ok() || pattern.size() != size) {
        fail(malformed("truncated pretoken counts: copy the whole file again"));
        return;
    }
    pattern_ = as_chars(pattern);
}

std::optional<CountsEntry> CountsReader::next() {
    if (at_end_) return std::nullopt;
    const std::optional<uint64_t> size = varint();
    if (size == 0u) return read_end();
    const std::optional<uint64_t> count = size ? varint() : std::nullopt;
    if (!count) return fail(malformed("truncated or damaged pretoken counts: copy the file again"));
    const Bytes pretoken = take(*size);
    if (pretoken.size() != *size) return fail(malformed("truncated or damaged pretoken counts: copy the file again"));
    std::swap(pretoken_, previous_);
    pretoken_.assign(pretoken.begin(), pretoken.end());
    if (*count == 0 || (num_entries_ > 0 && as_chars(pretoken_) <= as_chars(previous_)))
        return fail(malformed("damaged pretoken counts: their pretokens are not in order; copy the file again"));
    ++num_entries_;
    return CountsEntry{pretoken_, *count};
}

std::optional<CountsEntry> CountsReader::read_end() {
    const std::optional<uint64_t> num_entries = varint();
    const Sha256Digest digest = Sha256(hash_).finish();
    const Bytes stored = take(kDigestBytes);
    if (!std::ranges::equal(digest, stored) || num_entries != num_entries_ || fill(1))
        return fail(malformed("pretoken counts with a wrong SHA-256: the file is truncated or damaged; copy it again"));
    at_end_ = true;
    return std::nullopt;
}

MergedCounts::MergedCounts(std::vector<std::unique_ptr<SortedCounts>> sources) : sources_(std::move(sources)) {
    for (const auto& source : sources_) advance(source.get());
}

void MergedCounts::advance(SortedCounts* source) {
    if (const std::optional<CountsEntry> entry = source->next()) {
        heads_.push_back({*entry, source});
        std::ranges::push_heap(heads_, comes_later);
    } else if (status_.ok()) {
        status_ = source->status();
    }
}

std::optional<CountsEntry> MergedCounts::next() {
    if (!status_.ok() || heads_.empty()) return std::nullopt;
    const Bytes least = heads_.front().entry.pretoken;
    pretoken_.assign(least.begin(), least.end());
    uint64_t count = 0;
    while (!heads_.empty() && std::ranges::equal(heads_.front().entry.pretoken, pretoken_)) {
        std::ranges::pop_heap(heads_, comes_later);
        const Head head = heads_.back();
        heads_.pop_back();
        count += head.entry.count;
        advance(head.source);
    }
    if (!status_.ok()) return std::nullopt;
    return CountsEntry{pretoken_, count};
}

}  // namespace fastcompress::bpe
