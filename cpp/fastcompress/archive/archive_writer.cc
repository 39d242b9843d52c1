#include "fastcompress/archive/archive_writer.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::archive {

Result<ArchiveWriter> ArchiveWriter::make(const WriterSettings& settings) {
    const BlockCoder* const coder = block_coder(settings.method);
    if (coder == nullptr) {
        return invalid_argument("method is " + std::to_string(static_cast<uint8_t>(settings.method)) +
                                "; it must be 1 (lz) or 2 (cm)");
    }
    Header header;
    header.method = settings.method;
    header.level = settings.level == 0 ? coder->default_level() : settings.level;
    if (header.level > coder->max_level()) {
        return invalid_argument("level is " + std::to_string(header.level) + "; for method " +
                                std::string(coder->name()) + " it must be 1 to " + std::to_string(coder->max_level()));
    }
    header.block_bytes = settings.block_bytes == 0 ? coder->default_block_bytes(header.level) : settings.block_bytes;
    if (header.block_bytes < kMinBlockBytes || header.block_bytes > kMaxBlockBytes) {
        return invalid_argument("block_bytes is " + std::to_string(header.block_bytes) + "; it must be " +
                                std::to_string(kMinBlockBytes) + " to " + std::to_string(kMaxBlockBytes));
    }
    if (settings.num_threads > kMaxThreads) {
        return invalid_argument("num_threads is " + std::to_string(settings.num_threads) + "; it must be 1 to " +
                                std::to_string(kMaxThreads) + ", or 0 for one per core");
    }
    header.content_bytes = settings.content_bytes;
    header.model_hash = coder->model_hash();
    return ArchiveWriter(
        header, *coder,
        settings.num_threads == 0 ? std::min(default_num_threads(), kMaxThreads) : settings.num_threads);
}

ArchiveWriter::ArchiveWriter(const Header& header, const BlockCoder& coder, size_t num_threads)
    : header_(header), coder_(&coder), num_threads_(num_threads) {}

// Returns the header if nothing has been written yet, else nothing.
std::vector<uint8_t> ArchiveWriter::begin(Progress& progress) const {
    if (has_begun_) return {};
    std::vector<uint8_t> header = header_bytes(header_);
    progress.begin(header);
    return header;
}

// Encodes the waiting and the new bytes as far as they fill one block per thread; the rest waits.
std::vector<uint8_t> ArchiveWriter::append(Bytes bytes) {
    assert(!has_finished_);
    Progress progress = progress_;
    std::vector<uint8_t> out = begin(progress);
    const size_t batch = header_.block_bytes * num_threads_;
    const size_t num_waiting = waiting_.size();
    Rollback rollback([&] { waiting_.resize(num_waiting); });
    if (num_waiting > 0 || bytes.size() < batch) {
        const Bytes part = bytes.first(std::min(bytes.size(), batch - num_waiting));
        waiting_.insert(waiting_.end(), part.begin(), part.end());
        bytes = bytes.subspan(part.size());
    }
    if (waiting_.size() == batch) encode_blocks(waiting_, progress, out);
    for (; bytes.size() >= batch; bytes = bytes.subspan(batch)) encode_blocks(bytes.first(batch), progress, out);
    if (waiting_.size() == batch) {
        waiting_.assign(bytes.begin(), bytes.end());  // fits into its capacity
    } else if (!bytes.empty()) {
        waiting_.assign(bytes.begin(), bytes.end());  // nothing was waiting: whole batches were encoded directly
    }
    rollback.release();
    has_begun_ = true;
    progress_ = progress;
    return out;
}

void ArchiveWriter::encode_blocks(Bytes blocks, Progress& progress, std::vector<uint8_t>& out) const {
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
        const uint64_t checksum = xxh64(raw, xxh64(payload, xxh64(head.bytes(), progress.seed + progress.num_blocks)));
        put_u64(head, checksum);
        progress.add_block(raw.size(), checksum);
        out.insert(out.end(), head.bytes().begin(), head.bytes().end());
        out.insert(out.end(), payload.begin(), payload.end());
    }
}

Result<std::vector<uint8_t>> ArchiveWriter::finish() {
    assert(!has_finished_);
    Progress progress = progress_;
    std::vector<uint8_t> out = begin(progress);
    encode_blocks(waiting_, progress, out);
    if (header_.content_bytes && *header_.content_bytes != progress.num_bytes) {
        return invalid_argument("content_bytes is " + std::to_string(*header_.content_bytes) + "; the content has " +
                                std::to_string(progress.num_bytes));
    }
    ByteWriter end;
    end.u8(kEnd);
    put_u64(end, progress.num_blocks);
    put_u64(end, progress.num_bytes);
    put_u64(end, xxh64(end.bytes(), progress.chain));
    out.insert(out.end(), end.bytes().begin(), end.bytes().end());
    has_begun_ = has_finished_ = true;
    progress_ = progress;
    waiting_.clear();
    return out;
}

}  // namespace fastcompress::archive
