#include "fastcompress/archive/container.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"
#include "fastcompress/common/xxh64.h"

namespace fastcompress::archive {
namespace {

// Not text (0x89), names the format, and breaks if a transfer rewrites line ends.
constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'F', 'C', 'Z', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint8_t kKnowsContentBytes = 1;

enum Tag : uint8_t { kEnd = 0, kStored = 1, kCoded = 2 };
constexpr size_t kBlockFields = 9;  // tag, bytes, coded bytes; then their checksum
constexpr size_t kBlockHead = kBlockFields + 8;
constexpr size_t kEndFields = 17;  // tag, blocks, bytes
constexpr size_t kEndRecord = kEndFields + 8;

void put_u64(ByteWriter& out, uint64_t value) {
    out.u32(static_cast<uint32_t>(value));
    out.u32(static_cast<uint32_t>(value >> 32));
}
uint64_t get_u64(ByteReader& in) {
    const uint64_t low = in.u32();
    return low | uint64_t{in.u32()} << 32;
}
uint64_t chained(uint64_t chain, uint64_t checksum) {
    ByteWriter bytes;
    put_u64(bytes, checksum);
    return xxh64(bytes.bytes(), chain);
}

std::vector<uint8_t> header_bytes(const Header& header) {
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u8(static_cast<uint8_t>(header.method));
    out.u8(static_cast<uint8_t>(header.level));
    out.u8(header.content_bytes ? kKnowsContentBytes : 0);
    out.u8(0);
    out.u32(static_cast<uint32_t>(header.block_bytes));
    out.u32(0);
    put_u64(out, header.content_bytes.value_or(0));
    out.raw(header.model_hash);
    put_u64(out, xxh64(out.bytes(), 0));
    return out.take();
}

uint64_t seed_of(Bytes header) {
    return xxh64(header, 1);
}

std::string in_hex(const ModelHash& hash) {
    std::string text;
    for (size_t i = 0; i < 8; ++i) {
        text += "0123456789abcdef"[hash[i] >> 4];
        text += "0123456789abcdef"[hash[i] & 15];
    }
    return text;
}

std::string number(uint64_t value) {
    return std::to_string(value);
}

Status damaged(const std::string& what) {
    return malformed("fcz archive: " + what + "; it is damaged: copy it again");
}

}  // namespace

// Of the header's fields only the magic and version are looked at before the checksum.
Result<Header> read_header(Bytes archive) {
    const size_t num_magic = std::min(archive.size(), sizeof kMagic);
    if (num_magic == 0 || !std::equal(kMagic, kMagic + num_magic, archive.begin())) {
        return malformed("not an fcz archive (its first eight bytes are not 89 46 43 46 43 5A 0D 0A)");
    }
    if (archive.size() < kHeaderBytes)
        return malformed("fcz archive that ends within its header; copy the whole of it");
    const Bytes bytes = archive.first(kHeaderBytes);
    ByteReader in(bytes.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (version != kVersion) {
        return malformed("fcz archive of format version " + number(version) + "; this build reads version " +
                         number(kVersion) + ": update fastcompress");
    }
    ByteReader last(bytes.last(8));
    if (get_u64(last) != xxh64(bytes.first(kHeaderBytes - 8), 0)) return damaged("its header has a wrong checksum");
    Header header;
    header.method = static_cast<Method>(in.u8());
    header.level = in.u8();
    const uint8_t flags = in.u8();
    const uint8_t reserved = in.u8();
    header.block_bytes = in.u32();
    const uint32_t parameter = in.u32();
    const uint64_t content_bytes = get_u64(in);
    std::ranges::copy(in.raw(header.model_hash.size()), header.model_hash.begin());
    const BlockCoder* const coder = block_coder(header.method);
    if (coder == nullptr) {
        return malformed("fcz archive of method " + number(static_cast<uint8_t>(header.method)) +
                         ", which this build does not have: update fastcompress");
    }
    if (flags == kKnowsContentBytes) header.content_bytes = content_bytes;
    if (flags > kKnowsContentBytes || reserved != 0 || parameter != 0 || (flags == 0 && content_bytes != 0) ||
        header.level < 1 || header.level > coder->max_level() || header.block_bytes < kMinBlockBytes ||
        header.block_bytes > kMaxBlockBytes) {
        return malformed("fcz archive whose header has a setting that this build does not know: update fastcompress");
    }
    return header;
}

// --- Writing ---

Result<ArchiveWriter> ArchiveWriter::make(const WriterSettings& settings) {
    const BlockCoder* const coder = block_coder(settings.method);
    if (coder == nullptr) {
        return invalid_argument("there is no method " + number(static_cast<uint8_t>(settings.method)));
    }
    Header header;
    header.method = settings.method;
    header.level = settings.level == 0 ? coder->default_level() : settings.level;
    if (header.level > coder->max_level()) {
        return invalid_argument("level is " + number(header.level) + "; of method " + std::string(coder->name()) +
                                " it must be 1 to " + number(coder->max_level()));
    }
    header.block_bytes = settings.block_bytes == 0 ? coder->default_block_bytes(header.level) : settings.block_bytes;
    if (header.block_bytes < kMinBlockBytes || header.block_bytes > kMaxBlockBytes) {
        return invalid_argument("block_bytes is " + number(header.block_bytes) + "; it must be " +
                                number(kMinBlockBytes) + " to " + number(kMaxBlockBytes));
    }
    header.content_bytes = settings.content_bytes;
    header.model_hash = coder->model_hash();
    return ArchiveWriter(header, *coder, settings.num_threads == 0 ? default_num_threads() : settings.num_threads);
}

ArchiveWriter::ArchiveWriter(const Header& header, const BlockCoder& coder, size_t num_threads)
    : header_(header), coder_(&coder), num_threads_(num_threads) {}

std::vector<uint8_t> ArchiveWriter::append(Bytes bytes) {
    std::vector<uint8_t> out;
    if (!has_begun_) {
        has_begun_ = true;
        out = header_bytes(header_);
        chain_ = seed_ = seed_of(out);
    }
    const size_t batch = header_.block_bytes * num_threads_;
    while (!bytes.empty()) {
        if (waiting_.empty() && bytes.size() >= batch) {
            encode_blocks(bytes.first(batch), out);
            bytes = bytes.subspan(batch);
            continue;
        }
        const Bytes part = bytes.first(std::min(bytes.size(), batch - waiting_.size()));
        waiting_.insert(waiting_.end(), part.begin(), part.end());
        bytes = bytes.subspan(part.size());
        if (waiting_.size() == batch) {
            encode_blocks(waiting_, out);
            waiting_.clear();
        }
    }
    return out;
}

void ArchiveWriter::encode_blocks(Bytes blocks, std::vector<uint8_t>& out) {
    const size_t count = (blocks.size() + header_.block_bytes - 1) / header_.block_bytes;
    const auto block = [&](size_t i) {
        const size_t begin = i * header_.block_bytes;
        return blocks.subspan(begin, std::min(header_.block_bytes, blocks.size() - begin));
    };
    std::vector<std::vector<uint8_t>> coded(count);
    const auto weight = [&](size_t i) { return block(i).size(); };
    parallel_parts(count, num_threads_, weight, [&](size_t, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) coded[i] = coder_->encode(block(i), header_.level);
    });
    for (size_t i = 0; i < count; ++i) {
        const Bytes raw = block(i);
        const bool is_stored = coded[i].size() >= raw.size();
        const Bytes payload = is_stored ? raw : Bytes(coded[i]);
        ByteWriter head;
        head.u8(is_stored ? kStored : kCoded);
        head.u32(static_cast<uint32_t>(raw.size()));
        head.u32(static_cast<uint32_t>(payload.size()));
        const uint64_t checksum = xxh64(raw, xxh64(payload, xxh64(head.bytes(), seed_ + num_blocks_)));
        put_u64(head, checksum);
        chain_ = chained(chain_, checksum);
        ++num_blocks_;
        num_bytes_ += raw.size();
        out.insert(out.end(), head.bytes().begin(), head.bytes().end());
        out.insert(out.end(), payload.begin(), payload.end());
    }
}

Result<std::vector<uint8_t>> ArchiveWriter::finish() {
    std::vector<uint8_t> out = append({});
    encode_blocks(waiting_, out);
    waiting_.clear();
    if (header_.content_bytes && *header_.content_bytes != num_bytes_) {
        return invalid_argument("there were " + number(num_bytes_) + " bytes, not the " +
                                number(*header_.content_bytes) + " that were announced");
    }
    ByteWriter end;
    end.u8(kEnd);
    put_u64(end, num_blocks_);
    put_u64(end, num_bytes_);
    put_u64(end, xxh64(end.bytes(), chain_));
    out.insert(out.end(), end.bytes().begin(), end.bytes().end());
    return out;
}

// --- Reading ---

ArchiveReader::ArchiveReader(uint64_t max_output, size_t num_threads)
    : max_output_(max_output), num_threads_(num_threads == 0 ? default_num_threads() : num_threads) {}

Result<std::vector<uint8_t>> ArchiveReader::append(Bytes bytes) {
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    std::vector<uint8_t> out;
    if (Status status = read(out); !status.ok()) return status;
    if (pending_.empty() && num_read_ > 0) {
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(num_read_));
        num_read_ = 0;
    }
    return out;
}

Status ArchiveReader::read(std::vector<uint8_t>& out) {
    if (!header_) {
        // Foreign bytes are refused at once.
        if (waiting_.empty()) return {};
        auto header = read_header(waiting_);
        const bool may_be = std::equal(kMagic, kMagic + std::min(waiting_.size(), sizeof kMagic), waiting_.begin());
        if (waiting_.size() < kHeaderBytes && may_be) return {};
        if (!header.ok()) return header.status();
        coder_ = block_coder(header->method);
        if (header->model_hash != coder_->model_hash()) {
            return malformed("fcz archive that needs the model " + in_hex(header->model_hash) + "... (SHA-256), not " +
                             in_hex(coder_->model_hash()) + "...");
        }
        if (header->content_bytes.value_or(0) > max_output_) {
            return malformed("fcz archive of " + number(*header->content_bytes) + " bytes, more than max_output, " +
                             number(max_output_) + ": raise it if you trust the archive");
        }
        header_ = *header;
        chain_ = seed_ = seed_of(Bytes(waiting_).first(kHeaderBytes));
        num_read_ = kHeaderBytes;
    }
    while (num_read_ < waiting_.size()) {
        const Bytes record = Bytes(waiting_).subspan(num_read_);
        if (has_ended_) {
            return malformed("fcz archive with bytes after its end; archives are not joined: decompress each alone");
        }
        if (record[0] == kEnd) {
            if (record.size() < kEndRecord) return {};
            if (Status status = decode_pending(out); !status.ok()) return status;
            if (Status status = read_end(record.first(kEndRecord)); !status.ok()) return status;
            num_read_ += kEndRecord;
            continue;
        }
        const auto size = read_block(record);
        if (!size) return {};
        if (!size->ok()) return size->status();
        num_read_ += **size;
        if (pending_.size() == num_threads_) {
            if (Status status = decode_pending(out); !status.ok()) return status;
        }
    }
    return {};
}

std::optional<Result<size_t>> ArchiveReader::read_block(Bytes record) {
    const auto wrong = [&](const std::string& what) { return damaged("block " + number(num_blocks_) + " " + what); };
    if (record[0] > kCoded) return wrong("is of an unknown kind");
    if (record.size() < kBlockHead) return std::nullopt;
    ByteReader in(record);
    Block block;
    block.is_stored = in.u8() == kStored;
    block.num_bytes = in.u32();
    block.coded_bytes = in.u32();
    block.checksum = get_u64(in);
    if (block.num_bytes == 0 || block.num_bytes > header_->block_bytes) return wrong("is empty or too long");
    if (num_bytes_ % header_->block_bytes != 0) return wrong("follows one that is not full");
    if (block.is_stored ? block.coded_bytes != block.num_bytes : block.coded_bytes >= block.num_bytes) {
        return wrong("is longer coded than as it is");
    }
    if (num_bytes_ + block.num_bytes > header_->content_bytes.value_or(~uint64_t{0})) {
        return wrong("goes past the size in the header");
    }
    if (block.num_bytes > max_output_ - num_bytes_) {
        return malformed("fcz archive of more than max_output, " + number(max_output_) +
                         " bytes: raise it if you trust the archive");
    }
    if (record.size() - kBlockHead < block.coded_bytes) return std::nullopt;
    block.coded_begin = num_read_ + kBlockHead;
    const uint64_t fields = xxh64(record.first(kBlockFields), seed_ + num_blocks_);
    block.seed = xxh64(record.subspan(kBlockHead, block.coded_bytes), fields);
    pending_.push_back(block);
    chain_ = chained(chain_, block.checksum);
    ++num_blocks_;
    num_bytes_ += block.num_bytes;
    return kBlockHead + block.coded_bytes;
}

Status ArchiveReader::decode_pending(std::vector<uint8_t>& out) {
    const size_t begin = out.size();
    size_t size = begin;
    for (const Block& block : pending_) size += block.num_bytes;
    out.resize(size);
    std::vector<std::span<uint8_t>> places;
    for (uint8_t* next = out.data() + begin; const Block& block : pending_) {
        places.emplace_back(next, block.num_bytes);
        next += block.num_bytes;
    }
    std::vector<Status> errors(pending_.size());
    const auto decode = [&](size_t i) -> Status {
        const Block& block = pending_[i];
        const Bytes coded = Bytes(waiting_).subspan(block.coded_begin, block.coded_bytes);
        const std::string name = "block " + number(num_blocks_ - pending_.size() + i) + " ";
        if (block.is_stored) {
            std::ranges::copy(coded, places[i].begin());
        } else if (Status status = coder_->decode(coded, header_->level, places[i]); !status.ok()) {
            return damaged(name + "cannot be decoded (" + status.message + ")");
        }
        if (xxh64(places[i], block.seed) != block.checksum) return damaged(name + "has a wrong checksum");
        return {};
    };
    const auto weight = [&](size_t i) { return pending_[i].num_bytes; };
    parallel_parts(pending_.size(), num_threads_, weight, [&](size_t, size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) errors[i] = decode(i);
    });
    pending_.clear();
    for (const auto& error : errors) {
        if (!error.ok()) return error;
    }
    return {};
}

Status ArchiveReader::read_end(Bytes record) {
    ByteReader in(record.subspan(1));
    const uint64_t num_blocks = get_u64(in);
    const uint64_t num_bytes = get_u64(in);
    if (get_u64(in) != xxh64(record.first(kEndFields), chain_) || num_blocks != num_blocks_ ||
        num_bytes != num_bytes_) {
        return damaged("its end does not fit its blocks");
    }
    if (header_->content_bytes.value_or(num_bytes_) != num_bytes_) {
        return damaged("its end does not fit the size in the header");
    }
    has_ended_ = true;
    return {};
}

Status ArchiveReader::finish() const {
    if (has_ended_) return {};
    if (!header_)
        return waiting_.empty() ? malformed("not an fcz archive: it is empty") : read_header(waiting_).status();
    return malformed("fcz archive that ends within block " + number(num_blocks_) +
                     " or before its end; copy the whole of it");
}

// --- In one go ---

Result<std::vector<uint8_t>> compress(Bytes bytes, WriterSettings settings) {
    settings.content_bytes = bytes.size();
    auto writer = ArchiveWriter::make(settings);
    if (!writer.ok()) return writer.status();
    std::vector<uint8_t> out = writer->append(bytes);
    auto rest = writer->finish();
    if (!rest.ok()) return rest.status();
    out.insert(out.end(), rest->begin(), rest->end());
    return out;
}

Result<std::vector<uint8_t>> decompress(Bytes archive, uint64_t max_output, size_t num_threads) {
    ArchiveReader reader(max_output, num_threads);
    auto out = reader.append(archive);
    if (!out.ok()) return out.status();
    if (Status status = reader.finish(); !status.ok()) return status;
    return out;
}

}  // namespace fastcompress::archive
