#include "fastcompress/equal_info/codebook.h"

#include <algorithm>
#include <cstring>

#include "fastcompress/common/read_once.h"

namespace fastcompress::equal_info {
namespace {

// Not text (0x89); names the format; and damaged by a transfer that rewrites line ends.
constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = 32;

Status check_shape(unsigned bits, std::string_view pattern, size_t num_strings) {
    if (bits < Codebook::kMinBits || bits > Codebook::kMaxBits) {
        return invalid_argument("bits is " + std::to_string(bits) + "; it must be 9 to 16");
    }
    if (pattern.size() > Codebook::kMaxPatternBytes) {
        return invalid_argument("the name of a pattern has at most 255 bytes");
    }
    if (num_strings != Codebook::num_strings(bits)) {
        return invalid_argument("a codebook of " + std::to_string(bits) + " bits has " +
                                std::to_string(Codebook::num_strings(bits)) + " strings, not " +
                                std::to_string(num_strings));
    }
    return {};
}

// Returns the parent of each node. kInvalidArgument unless the nodes are the preorder of a trie with all single bytes.
Result<std::vector<uint32_t>> parents_of(const std::vector<Codebook::Node>& nodes) {
    std::vector<uint32_t> parents(nodes.size());
    std::array<uint32_t, Codebook::kMaxLength + 1> last;  // the last node of each length
    last.fill(TrieTable::kRoot);
    size_t num_single = 0;
    size_t previous = 0;  // length of the previous string
    for (uint32_t i = 0; i < nodes.size(); ++i) {
        const size_t length = nodes[i].length;
        if (length == 0 || length > previous + 1) {
            return invalid_argument("string " + std::to_string(i) + " of a codebook lacks its prefix");
        }
        if (length <= previous && nodes[last[length]].byte >= nodes[i].byte) {
            return invalid_argument("string " + std::to_string(i) + " of a codebook is out of order");
        }
        num_single += length == 1;
        parents[i] = length == 1 ? TrieTable::kRoot : last[length - 1];
        last[length] = i;
        previous = length;
    }
    if (num_single != 256) return invalid_argument("a codebook has all 256 single bytes");
    return parents;
}

}  // namespace

Result<Codebook> Codebook::make(unsigned bits, std::string pattern, std::vector<Node> nodes) {
    if (Status status = check_shape(bits, pattern, nodes.size()); !status.ok()) return status;
    const auto parents = parents_of(nodes);
    if (!parents.ok()) return parents.status();
    Codebook book;
    book.bits_ = bits;
    book.pattern_ = std::move(pattern);
    book.nodes_ = std::move(nodes);
    std::vector<uint8_t> bytes;
    bytes.reserve(book.size());
    for (const Node& node : book.nodes_) bytes.push_back(node.byte);
    book.table_ = TrieTable(*parents, bytes);
    book.index_children(*parents);
    book.write_strings();
    const std::vector<uint8_t> file = book.serialize();
    std::copy(file.end() - kDigestBytes, file.end(), book.fingerprint_.begin());
    return book;
}

Result<Codebook> Codebook::from_strings(unsigned bits, std::string pattern, std::vector<std::string> strings) {
    if (Status status = check_shape(bits, pattern, strings.size()); !status.ok()) return status;
    std::ranges::sort(strings, [](const std::string& a, const std::string& b) {
        return std::ranges::lexicographical_compare(as_bytes(a), as_bytes(b));
    });
    std::vector<Node> nodes;
    nodes.reserve(strings.size());
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string& text = strings[i];
        if (text.empty() || text.size() > kMaxLength) {
            return invalid_argument("a codebook's strings have 1 to 255 bytes, not " + std::to_string(text.size()));
        }
        // In lexicographic order only a prefix and its other extensions come between a string and its prefix.
        const std::string_view before = i == 0 ? std::string_view() : std::string_view(strings[i - 1]);
        const size_t prefix = text.size() - 1;
        if (before.size() < prefix || before.substr(0, prefix) != std::string_view(text).substr(0, prefix)) {
            return invalid_argument("string " + std::to_string(i) + " of a codebook lacks its prefix");
        }
        nodes.push_back({static_cast<uint8_t>(text.size()), static_cast<uint8_t>(text.back())});
    }
    return make(bits, std::move(pattern), std::move(nodes));
}

void Codebook::index_children(const std::vector<uint32_t>& parents) {
    child_begins_.assign(size() + 1, 0);
    for (const uint32_t parent : parents) {
        if (parent != TrieTable::kRoot) ++child_begins_[parent + 1];
    }
    for (size_t i = 0; i < size(); ++i) child_begins_[i + 1] += child_begins_[i];
    child_bytes_.resize(child_begins_.back());
    std::vector<uint32_t> next(child_begins_.begin(), child_begins_.end() - 1);
    for (size_t i = 0; i < size(); ++i) {
        if (parents[i] != TrieTable::kRoot) child_bytes_[next[parents[i]]++] = nodes_[i].byte;
    }
}

// A node that has children begins where the first of them does.
void Codebook::write_strings() {
    begins_.resize(size());
    std::array<uint8_t, kMaxLength + 1> path{};
    size_t first = 0;  // the first node whose string is not written yet; each such string is a prefix of the next
    for (size_t i = 0; i < size(); ++i) {
        path[nodes_[i].length - 1] = nodes_[i].byte;
        if (i + 1 < size() && nodes_[i + 1].length > nodes_[i].length) continue;
        for (; first <= i; ++first) begins_[first] = static_cast<uint32_t>(blob_.size());
        blob_.insert(blob_.end(), path.begin(), path.begin() + nodes_[i].length);
    }
    entries_.resize(size());
    for (uint32_t i = 0; i < size(); ++i) {
        const Bytes text = string(i);
        Entry& entry = entries_[i];
        entry.bytes.fill(0);
        entry.bytes[15] = static_cast<uint8_t>(text.size());
        if (text.size() <= kMaxShort) std::ranges::copy(text, entry.bytes.begin());
    }
}

bool Codebook::extends(uint32_t id, uint8_t byte) const {
    const Bytes bytes = illegal_next_bytes(id);
    return std::binary_search(bytes.begin(), bytes.end(), byte);
}

template <class Id>
Result<size_t> Codebook::decoded_bytes(std::span<const Id> ids, size_t max_bytes) const {
    size_t total = 0;
    const size_t num_ids = size();
    for (size_t i = 0; i < ids.size(); ++i) {
        const Id id = read_once(ids[i]);
        if (id >= num_ids) {
            return unknown_token("id " + std::to_string(id) + " at position " + std::to_string(i) +
                                 " is not one of the codebook's " + std::to_string(num_ids));
        }
        total += nodes_[id].length;
    }
    if (total > max_bytes) {
        return invalid_argument("these ids stand for " + std::to_string(total) + " bytes, more than " +
                                std::to_string(max_bytes));
    }
    return total;
}

template <class Id>
bool Codebook::decode(std::span<const Id> ids, std::span<uint8_t> out) const {
    constexpr size_t kWide = sizeof(Entry);
    const size_t num_ids = size();
    uint8_t* next = out.data();
    uint8_t* const end = next + out.size();
    size_t i = 0;
    // As many ids at a time as fit for certain, without a look at the room that is left.
    for (;;) {
        const size_t num_safe = std::min(ids.size() - i, static_cast<size_t>(end - next) / (kMaxLength + kWide));
        if (num_safe == 0) break;
        for (const size_t stop = i + num_safe; i < stop; ++i) {
            const size_t id = read_once(ids[i]);
            if (id >= num_ids) [[unlikely]]
                return false;
            const Entry& entry = entries_[id];
            const size_t length = entry.bytes[kMaxShort];
            if (length > kMaxShort) {
                std::memcpy(next, blob_.data() + begins_[id], length);
            } else {
                std::memcpy(next, entry.bytes.data(), kWide);  // the next ids overwrite the excess bytes
            }
            next += length;
        }
    }
    for (; i < ids.size(); ++i) {
        const size_t id = read_once(ids[i]);
        if (id >= num_ids) return false;
        const Bytes text = string(static_cast<uint32_t>(id));
        if (text.size() > static_cast<size_t>(end - next)) return false;
        next = std::copy(text.begin(), text.end(), next);
    }
    return next == end;
}

template Result<size_t> Codebook::decoded_bytes(std::span<const uint16_t>, size_t) const;
template Result<size_t> Codebook::decoded_bytes(std::span<const uint32_t>, size_t) const;
template bool Codebook::decode(std::span<const uint16_t>, std::span<uint8_t>) const;
template bool Codebook::decode(std::span<const uint32_t>, std::span<uint8_t>) const;

std::vector<uint8_t> Codebook::serialize() const {
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u8(static_cast<uint8_t>(bits_));
    out.string(as_bytes(pattern_));
    for (const Node& node : nodes_) out.u8(node.length);
    for (const Node& node : nodes_) out.u8(node.byte);
    out.raw(sha256(out.bytes()));
    return out.take();
}

Result<Codebook> Codebook::parse(Bytes file) {
    if (file.size() < sizeof kMagic || !std::equal(std::begin(kMagic), std::end(kMagic), file.begin())) {
        return malformed("not a fastcompress codebook (its first eight bytes are not 89 46 43 42 4F 4B 0D 0A)");
    }
    ByteReader in(file.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (in.ok() && version != kVersion) {
        return malformed("codebook of format version " + std::to_string(version) +
                         "; this build reads version 1: update fastcompress");
    }
    if (in.remaining() < kDigestBytes) return malformed("truncated codebook: copy the whole file again");
    const Sha256Digest digest = sha256(file.first(file.size() - kDigestBytes));
    if (!std::ranges::equal(digest, file.last(kDigestBytes))) {
        return malformed("codebook with a wrong SHA-256: the file is truncated or damaged; copy it again");
    }
    in = ByteReader(file.subspan(sizeof kMagic + 4, file.size() - sizeof kMagic - 4 - kDigestBytes));
    const unsigned bits = in.u8();
    const Bytes pattern = in.string();
    const size_t num_strings = in.remaining() / 2;
    const Bytes lengths = in.raw(num_strings);
    const Bytes bytes = in.raw(num_strings);
    if (!in.ok() || in.remaining() > 0) return malformed("codebook whose fields do not fit its length");
    if (Status status = check_shape(bits, as_chars(pattern), num_strings); !status.ok())
        return malformed(status.message);
    std::vector<Node> nodes(num_strings);
    for (size_t i = 0; i < num_strings; ++i) nodes[i] = {lengths[i], bytes[i]};
    Result<Codebook> book = make(bits, std::string(as_chars(pattern)), std::move(nodes));
    if (!book.ok()) return malformed("inconsistent codebook: " + book.status().message);
    return book;
}

}  // namespace fastcompress::equal_info
