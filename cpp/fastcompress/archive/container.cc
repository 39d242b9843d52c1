#include "fastcompress/archive/container.h"

namespace fastcompress::archive {

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
