// Arbitrary bytes as a file of pretoken counts: refused or read, and what is read is written back as it was.
#include <cstdlib>

#include "fastcompress/bpe/train/counts_file.h"

using namespace fastcompress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The checksum would refuse nearly everything, so a true one is put behind what the fuzzer gives.
    std::vector<uint8_t> blob(data, data + size);
    const Sha256Digest digest = sha256(blob);
    blob.insert(blob.end(), digest.begin(), digest.end());

    const std::unique_ptr<bpe::CountsReader> reader = bpe::CountsReader::from_bytes(blob);
    std::vector<uint8_t> copy;
    bpe::CountsWriter writer(
        [&](Bytes bytes) {
            copy.insert(copy.end(), bytes.begin(), bytes.end());
            return true;
        },
        reader->pattern());
    while (const auto entry = reader->next()) writer.add(*entry);
    if (!reader->status().ok()) return 0;
    if (!writer.finish() || copy != blob) std::abort();
    return 0;
}
