// The vocabulary file: FORMAT.md says what each byte means.
#include <algorithm>

#include "fastcompress/bpe/vocabulary.h"
#include "fastcompress/common/sha256.h"

namespace fastcompress::bpe {
namespace {

// Not text (0x89), names the format, and breaks if a transfer rewrites line ends.
constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'B', 'P', 'E', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = 32;

}  // namespace

std::vector<uint8_t> Vocabulary::serialize() const {
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u8(static_cast<uint8_t>(spec_.order));
    out.string(as_bytes(pretokenizer::info(spec_.pattern).name));

    out.u32(static_cast<uint32_t>(size()));
    for (TokenId id = 0; id < size(); ++id) out.string(is_special_[id] ? Bytes() : token_bytes(id));

    out.u32(static_cast<uint32_t>(spec_.merges.size()));
    for (const Merge& merge : spec_.merges) {
        out.u32(merge.left);
        out.u32(merge.right);
        out.u32(merge.result);
    }
    out.u32(static_cast<uint32_t>(spec_.special_tokens.size()));
    for (const SpecialToken& special : spec_.special_tokens) {
        out.u32(special.id);
        out.string(as_bytes(special.text));
    }
    out.raw(sha256(out.bytes()));
    return out.take();
}

Result<Vocabulary> Vocabulary::parse(Bytes blob) {
    if (blob.size() < sizeof kMagic || !std::equal(std::begin(kMagic), std::end(kMagic), blob.begin())) {
        return malformed("not a fastcompress BPE vocabulary (its first eight bytes are not 89 46 43 42 50 45 0D 0A)");
    }
    ByteReader in(blob.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (in.ok() && version != kVersion) {
        return malformed("BPE vocabulary of format version " + std::to_string(version) + "; this build reads version " +
                         std::to_string(kVersion) + ": update fastcompress");
    }
    if (in.remaining() < kDigestBytes) return malformed("truncated BPE vocabulary: copy the whole file again");
    const Sha256Digest digest = sha256(blob.first(blob.size() - kDigestBytes));
    if (!std::ranges::equal(digest, blob.last(kDigestBytes))) {
        return malformed("BPE vocabulary with a wrong SHA-256: the file is truncated or damaged; copy it again");
    }
    in = ByteReader(blob.subspan(sizeof kMagic + 4, blob.size() - sizeof kMagic - 4 - kDigestBytes));

    VocabularySpec spec;
    const uint8_t order = in.u8();
    if (order > 1) return malformed("BPE vocabulary with the unknown merge order " + std::to_string(order));
    spec.order = static_cast<MergeOrder>(order);
    const std::string pattern_name(as_chars(in.string()));
    const auto pattern = pretokenizer::pattern_from_name(pattern_name);
    if (in.ok() && !pattern) {
        return malformed("BPE vocabulary for the pattern '" + pattern_name + "', which this build does not know");
    }
    spec.pattern = pattern.value_or(pretokenizer::Pattern::kNone);

    // Each record takes at least so many bytes: a count that the rest cannot hold is refused before anything is
    // allocated.
    const auto count = [&in](size_t record_bytes) -> size_t {
        const size_t value = in.u32();
        if (value > in.remaining() / record_bytes) in.raw(in.remaining() + 1);
        return in.ok() ? value : 0;
    };
    spec.tokens.resize(count(4));
    for (std::string& token : spec.tokens) token = as_chars(in.string());
    spec.merges.resize(count(12));
    for (Merge& merge : spec.merges) {
        merge.left = in.u32();
        merge.right = in.u32();
        merge.result = in.u32();
    }
    spec.special_tokens.resize(count(8));
    size_t least_id = 0;
    for (SpecialToken& special : spec.special_tokens) {
        special.id = in.u32();
        special.text = as_chars(in.string());
        if (special.id < least_id || special.id >= spec.tokens.size()) {
            return malformed("BPE vocabulary whose special tokens are not in ascending order below its last id");
        }
        least_id = special.id;
    }
    if (!in.ok() || in.remaining() > 0) return malformed("BPE vocabulary whose counts do not fit its length");
    Result<Vocabulary> vocabulary = make(std::move(spec));
    if (!vocabulary.ok()) return malformed("inconsistent BPE vocabulary: " + vocabulary.status().message);
    return vocabulary;
}

}  // namespace fastcompress::bpe
