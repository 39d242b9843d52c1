// Writes and reads the file of a vocabulary (FORMAT.md).
#include <algorithm>
#include <optional>
#include <string_view>

#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/common/sha256.h"

namespace fastcompress::bpe {
namespace {

// Not text (0x89); names the format; and damaged by a transfer that rewrites line ends.
constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'B', 'P', 'E', '\r', '\n'};
constexpr uint32_t kNewestVersion = 2;
constexpr size_t kDigestBytes = 32;

// The bits of the options field.
constexpr uint8_t kIgnoreMergesBit = 1 << 0;
constexpr uint8_t kPrefixSpaceBit = 1 << 1;
constexpr uint8_t kAllOptionBits = (1 << 2) - 1;

std::string_view normalizer_name(Normalizer normalizer) {
    return normalizer == Normalizer::kNfc ? "NFC" : "";
}

}  // namespace

// The earliest version that can express the vocabulary.
uint32_t Vocabulary::format_version() const {
    const auto is_plain = [](const AddedToken& token) { return token.flags == kSpecial; };
    const bool is_version_1 = !spec_.ignore_merges && !spec_.prefix_space && has_all_bytes_ &&
                              spec_.normalizer == Normalizer::kNone && spec_.custom_pattern.empty() &&
                              spec_.metadata.empty() && std::ranges::all_of(spec_.added_tokens, is_plain);
    return is_version_1 ? 1 : 2;
}

std::vector<uint8_t> Vocabulary::serialize() const {
    const uint32_t version = format_version();
    const bool is_custom = !spec_.custom_pattern.empty();
    ByteWriter out;
    out.raw(kMagic);
    out.u32(version);
    out.u8(static_cast<uint8_t>(spec_.order));
    if (version > 1) {
        out.u8(static_cast<uint8_t>((spec_.ignore_merges ? kIgnoreMergesBit : 0) |
                                    (spec_.prefix_space ? kPrefixSpaceBit : 0)));
        out.string(as_bytes(normalizer_name(spec_.normalizer)));
    }
    out.string(is_custom ? Bytes() : as_bytes(pretokenizer::info(spec_.pattern).name));
    if (version > 1) {
        out.string(as_bytes(spec_.custom_pattern));
        out.string(as_bytes(spec_.metadata));
    }

    out.u32(static_cast<uint32_t>(size()));
    for (TokenId id = 0; id < size(); ++id) out.string(is_added_[id] ? Bytes() : token_bytes(id));

    out.u32(static_cast<uint32_t>(spec_.merges.size()));
    for (const Merge& merge : spec_.merges) {
        out.u32(merge.left);
        out.u32(merge.right);
        out.u32(merge.result);
    }
    out.u32(static_cast<uint32_t>(spec_.added_tokens.size()));
    for (const AddedToken& added : spec_.added_tokens) {
        out.u32(added.id);
        if (version > 1) out.u8(added.flags);
        out.string(as_bytes(added.text));
    }
    out.raw(sha256(out.bytes()));
    return out.take();
}

namespace {

// Reads a count of records of at least record_bytes bytes. A count that exceeds the rest of the file is rejected before
// any memory is allocated.
size_t read_count(ByteReader& in, size_t record_bytes) {
    const size_t value = in.u32();
    if (value > in.remaining() / record_bytes) in.raw(in.remaining() + 1);
    return in.ok() ? value : 0;
}

// The fields before the tokens.
Status read_settings(ByteReader& in, uint32_t version, VocabularySpec& spec) {
    const uint8_t order = in.u8();
    if (order > 1) return malformed("BPE vocabulary with the unknown merge order " + std::to_string(order));
    spec.order = static_cast<MergeOrder>(order);
    if (version > 1) {
        const uint8_t options = in.u8();
        if (options & ~kAllOptionBits) return malformed("BPE vocabulary with unknown options");
        spec.ignore_merges = (options & kIgnoreMergesBit) != 0;
        spec.prefix_space = (options & kPrefixSpaceBit) != 0;
        const std::string normalizer(as_chars(in.string()));
        if (!normalizer.empty()) spec.normalizer = Normalizer::kNfc;
        if (normalizer != normalizer_name(spec.normalizer)) {
            return malformed("BPE vocabulary for the normalizer '" + normalizer + "', which this build does not know");
        }
    }
    const std::string pattern_name(as_chars(in.string()));
    if (version > 1) {
        spec.custom_pattern = as_chars(in.string());
        spec.metadata = as_chars(in.string());
    }
    const auto pattern = pretokenizer::pattern_from_name(pattern_name);
    const bool is_custom = !spec.custom_pattern.empty();
    if (in.ok() && (is_custom ? !pattern_name.empty() : !pattern)) {
        return malformed("BPE vocabulary for the pattern '" + pattern_name + "', which this build does not know");
    }
    spec.pattern = pattern.value_or(pretokenizer::Pattern::kNone);
    return {};
}

Status read_added_tokens(ByteReader& in, uint32_t version, VocabularySpec& spec) {
    spec.added_tokens.resize(read_count(in, version > 1 ? 9 : 8));
    size_t least_id = 0;
    for (AddedToken& added : spec.added_tokens) {
        added.id = in.u32();
        if (version > 1) added.flags = in.u8();
        added.text = as_chars(in.string());
        if (added.id < least_id || added.id >= spec.tokens.size()) {
            return malformed("BPE vocabulary whose special tokens are not in ascending order below its last id");
        }
        least_id = added.id;
    }
    return {};
}

}  // namespace

Result<Vocabulary> Vocabulary::parse(Bytes blob) {
    if (blob.size() < sizeof kMagic || !std::equal(std::begin(kMagic), std::end(kMagic), blob.begin())) {
        return malformed("not a fastcompress BPE vocabulary (its first eight bytes are not 89 46 43 42 50 45 0D 0A)");
    }
    ByteReader in(blob.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (in.ok() && (version == 0 || version > kNewestVersion)) {
        return malformed("BPE vocabulary of format version " + std::to_string(version) +
                         "; this build reads versions 1 to " + std::to_string(kNewestVersion) +
                         ": update fastcompress");
    }
    if (in.remaining() < kDigestBytes) return malformed("truncated BPE vocabulary: copy the whole file again");
    const Sha256Digest digest = sha256(blob.first(blob.size() - kDigestBytes));
    if (!std::ranges::equal(digest, blob.last(kDigestBytes))) {
        return malformed("BPE vocabulary with a wrong SHA-256: the file is truncated or damaged; copy it again");
    }
    in = ByteReader(blob.subspan(sizeof kMagic + 4, blob.size() - sizeof kMagic - 4 - kDigestBytes));

    VocabularySpec spec;
    if (Status status = read_settings(in, version, spec); !status.ok()) return status;
    spec.tokens.resize(read_count(in, 4));
    for (std::string& token : spec.tokens) token = as_chars(in.string());
    spec.merges.resize(read_count(in, 12));
    for (Merge& merge : spec.merges) {
        merge.left = in.u32();
        merge.right = in.u32();
        merge.result = in.u32();
    }
    if (Status status = read_added_tokens(in, version, spec); !status.ok()) return status;
    if (!in.ok() || in.remaining() > 0) return malformed("BPE vocabulary whose counts do not fit its length");
    Result<Vocabulary> vocabulary = make(std::move(spec));
    if (!vocabulary.ok()) return malformed("inconsistent BPE vocabulary: " + vocabulary.status().message);
    if (vocabulary->format_version() != version) {
        return malformed("BPE vocabulary that is not of the format version " + std::to_string(version) + " it claims");
    }
    return vocabulary;
}

}  // namespace fastcompress::bpe
