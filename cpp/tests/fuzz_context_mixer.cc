// A good file of a context mixer with bytes changed, its checksum made right: what parses must be the same file again,
// and code any bytes. And any bytes as messages.
#include <algorithm>
#include <cstdlib>

#include "fastcompress/common/sha256.h"
#include "fastcompress/context_mixer/context_mixer.h"

using namespace fastcompress;
using context_mixer::ContextMixer;

namespace {

ContextMixer small_mixer() {
    ContextMixer mixer({.log2_table_bytes = 12, .log2_match_entries = 10, .reset_interval = 0});
    mixer.update(as_bytes("A mixer that has seen a little: a mixer, a little."));
    return mixer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const ContextMixer good = small_mixer();
    static const std::vector<uint8_t> good_blob = good.serialize();
    (void)good.decode(Bytes(data, size), size * 3);

    std::vector<uint8_t> blob(good_blob.begin(), good_blob.end() - 32);
    for (size_t i = 0; i + 4 <= size && i < 40; i += 4) {
        const size_t place = data[i] | size_t{data[i + 1]} << 8 | size_t{data[i + 2]} << 16;
        blob[place % blob.size()] = data[i + 3];
    }
    const Sha256Digest digest = sha256(blob);
    blob.insert(blob.end(), digest.begin(), digest.end());
    auto mixer = ContextMixer::parse(blob);
    if (!mixer.ok()) return 0;
    if (mixer->params().log2_table_bytes > 16) return 0;  // writing and copying take time in the table's size
    if (mixer->serialize() != blob) std::abort();
    auto back = mixer->decode(mixer->encode(Bytes(data, size)), size);
    if (!back.ok() || !std::ranges::equal(*back, Bytes(data, size))) std::abort();
    return 0;
}
