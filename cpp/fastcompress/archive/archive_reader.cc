#include "fastcompress/archive/archive_reader.h"

#include <algorithm>
#include <string>

#include "fastcompress/archive/archive_writer.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::archive {
namespace {

std::string in_hex(const ModelHash& hash) {
    std::string text;
    for (size_t i = 0; i < 8; ++i) {
        text += "0123456789abcdef"[hash[i] >> 4];
        text += "0123456789abcdef"[hash[i] & 15];
    }
    return text;
}

}  // namespace

ArchiveReader::ArchiveReader(uint64_t max_output, size_t num_threads)
    : max_output_(max_output),
      num_threads_(std::min(num_threads == 0 ? default_num_threads() : num_threads, kMaxThreads)) {}

Result<std::vector<uint8_t>> ArchiveReader::append(Bytes bytes) {
    if (!failed_.ok()) return failed_;
    State state = state_;
    std::vector<Block> pending = pending_;
    const size_t num_waiting = waiting_.size();
    Rollback rollback([&] {
        state_ = state;
        pending_.swap(pending);
        waiting_.resize(num_waiting);
    });
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    std::vector<uint8_t> out;
    if (Status status = read(out); !status.ok()) {
        failed_ = status;
        rollback.release();
        return status;
    }
    rollback.release();
    if (pending_.empty() && state_.num_read > 0) {
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(state_.num_read));
        state_.num_read = 0;
    }
    return out;
}

Status ArchiveReader::read(std::vector<uint8_t>& out) {
    if (!state_.header) {
        // Other files are rejected at the first byte that differs.
        if (waiting_.size() < kHeaderBytes && may_begin_archive(waiting_)) return {};
        if (Status status = begin(); !status.ok()) return status;
    }
    while (state_.num_read < waiting_.size()) {
        const Bytes record = Bytes(waiting_).subspan(state_.num_read);
        if (state_.has_ended) {
            return malformed("fcz archive with bytes after its end; archives are not joined: decompress each alone");
        }
        if (record[0] == kEnd) {
            if (record.size() < kEndRecord) return {};
            if (Status status = decode_pending(out); !status.ok()) return status;
            if (Status status = read_end(record.first(kEndRecord)); !status.ok()) return status;
            state_.num_read += kEndRecord;
            continue;
        }
        const auto size = read_block(record);
        if (!size) return {};
        if (!size->ok()) return size->status();
        state_.num_read += **size;
        if (pending_.size() == num_threads_) {
            if (Status status = decode_pending(out); !status.ok()) return status;
        }
    }
    return {};
}

// Reads the header. Either all of its bytes are waiting, or the magic is wrong.
Status ArchiveReader::begin() {
    const auto header = read_header(waiting_);
    if (!header.ok()) return header.status();
    coder_ = block_coder(header->method);
    if (header->model_hash != coder_->model_hash()) {
        return malformed("fcz archive that needs the model " + in_hex(header->model_hash) + "... (SHA-256), not " +
                         in_hex(coder_->model_hash()) + "...");
    }
    if (header->content_bytes.value_or(0) > max_output_) {
        return malformed("fcz archive of " + std::to_string(*header->content_bytes) + " bytes, more than max_output, " +
                         std::to_string(max_output_) + ": raise it if you trust the archive");
    }
    state_.header = *header;
    state_.progress.begin(Bytes(waiting_).first(kHeaderBytes));
    state_.num_read = kHeaderBytes;
    return {};
}

std::optional<Result<size_t>> ArchiveReader::read_block(Bytes record) {
    Progress& progress = state_.progress;
    const auto wrong = [&](const std::string& what) {
        return damaged("block " + std::to_string(progress.num_blocks) + " " + what);
    };
    if (record[0] > kCoded) return wrong("is of an unknown kind");
    if (record.size() < kBlockHead) return std::nullopt;
    ByteReader in(record);
    Block block;
    block.is_stored = in.u8() == kStored;
    block.num_bytes = in.u32();
    block.coded_bytes = in.u32();
    block.checksum = get_u64(in);
    if (block.num_bytes == 0 || block.num_bytes > state_.header->block_bytes) return wrong("is empty or too long");
    if (progress.num_bytes % state_.header->block_bytes != 0) return wrong("follows one that is not full");
    if (block.is_stored ? block.coded_bytes != block.num_bytes : block.coded_bytes >= block.num_bytes) {
        return wrong("is longer coded than stored");
    }
    if (progress.num_bytes + block.num_bytes > state_.header->content_bytes.value_or(~uint64_t{0})) {
        return wrong("exceeds the size in the header");
    }
    if (block.num_bytes > max_output_ - progress.num_bytes) {
        return malformed("fcz archive of more than max_output, " + std::to_string(max_output_) +
                         " bytes: raise it if you trust the archive");
    }
    if (record.size() - kBlockHead < block.coded_bytes) return std::nullopt;
    block.coded_begin = state_.num_read + kBlockHead;
    const uint64_t fields = xxh64(record.first(kBlockFields), progress.seed + progress.num_blocks);
    block.seed = xxh64(record.subspan(kBlockHead, block.coded_bytes), fields);
    pending_.push_back(block);
    progress.add_block(block.num_bytes, block.checksum);
    return kBlockHead + block.coded_bytes;
}

// Decodes the pending blocks, one per thread, and appends their bytes to `out`.
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
    const uint64_t first_index = state_.progress.num_blocks - pending_.size();
    const auto weight = [&](size_t i) { return pending_[i].num_bytes; };
    parallel_parts(pending_.size(), num_threads_, weight, [&](size_t, size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) errors[i] = decode_block(pending_[i], first_index + i, places[i]);
    });
    pending_.clear();
    for (const Status& error : errors) {
        if (!error.ok()) return error;
    }
    return {};
}

Status ArchiveReader::decode_block(const Block& block, uint64_t index, std::span<uint8_t> out) const {
    const Bytes coded = Bytes(waiting_).subspan(block.coded_begin, block.coded_bytes);
    const auto wrong = [&](const std::string& what) { return damaged("block " + std::to_string(index) + " " + what); };
    if (block.is_stored) {
        std::ranges::copy(coded, out.begin());
    } else if (Status status = coder_->decode(coded, state_.header->level, out); !status.ok()) {
        return wrong("cannot be decoded (" + status.message + ")");
    }
    if (xxh64(out, block.seed) != block.checksum) return wrong("has a wrong checksum");
    return {};
}

Status ArchiveReader::read_end(Bytes record) {
    const Progress& progress = state_.progress;
    ByteReader in(record.subspan(1));
    const uint64_t num_blocks = get_u64(in);
    const uint64_t num_bytes = get_u64(in);
    if (get_u64(in) != xxh64(record.first(kEndFields), progress.chain) || num_blocks != progress.num_blocks ||
        num_bytes != progress.num_bytes) {
        return damaged("its end does not fit its blocks");
    }
    if (state_.header->content_bytes.value_or(num_bytes) != num_bytes) {
        return damaged("its end does not fit the size in the header");
    }
    state_.has_ended = true;
    return {};
}

Status ArchiveReader::finish() const {
    if (!failed_.ok()) return failed_;
    if (state_.has_ended) return {};
    if (!state_.header) {
        return waiting_.empty() ? malformed("not an fcz archive: it is empty") : read_header(waiting_).status();
    }
    return malformed("fcz archive that ends within block " + std::to_string(state_.progress.num_blocks) +
                     " or before its end; copy the whole of it");
}

}  // namespace fastcompress::archive
