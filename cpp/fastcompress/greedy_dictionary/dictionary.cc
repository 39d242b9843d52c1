#include "fastcompress/greedy_dictionary/dictionary.h"

#include <algorithm>
#include <cstring>

#include "fastcompress/common/read_once.h"
#include "fastcompress/equal_info/greedy_parse.h"

namespace fastcompress::greedy_dictionary {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kDigestBytes = 32;

bool less(Bytes a, Bytes b) {
    return std::ranges::lexicographical_compare(a, b);
}

size_t common_prefix(Bytes a, Bytes b) {
    return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Status check_strings(const std::vector<Bytes>& strings) {
    if (strings.size() < Dictionary::kMinStrings || strings.size() > Dictionary::kMaxStrings) {
        return invalid_argument("a dictionary has 256 to 65536 strings, not " + std::to_string(strings.size()));
    }
    size_t num_single = 0;
    for (size_t i = 0; i < strings.size(); ++i) {
        if (strings[i].empty() || strings[i].size() > Dictionary::kMaxLength) {
            return invalid_argument("a dictionary's strings have 1 to 255 bytes, not " +
                                    std::to_string(strings[i].size()));
        }
        if (i > 0 && !less(strings[i - 1], strings[i])) {
            return invalid_argument("strings " + std::to_string(i - 1) + " and " + std::to_string(i) +
                                    " of a dictionary, in lexicographic order, are the same or out of order");
        }
        num_single += strings[i].size() == 1;
    }
    if (num_single != 256) return invalid_argument("a dictionary has all 256 single bytes");
    return {};
}

}  // namespace

Result<Dictionary> Dictionary::from_strings(std::vector<std::string> strings) {
    std::vector<Bytes> sorted;
    sorted.reserve(strings.size());
    for (const std::string& text : strings) sorted.push_back(as_bytes(text));
    std::ranges::sort(sorted, less);
    return make(std::move(sorted));
}

Result<Dictionary> Dictionary::make(std::vector<Bytes> strings) {
    if (Status status = check_strings(strings); !status.ok()) return status;
    Dictionary made;
    for (const Bytes text : strings) {
        made.lengths_.push_back(static_cast<uint8_t>(text.size()));
        made.begins_.push_back(static_cast<uint32_t>(made.blob_.size()));
        made.blob_.insert(made.blob_.end(), text.begin(), text.end());
    }
    if (Status status = made.add_nodes(strings); !status.ok()) return status;
    made.fill_table();
    const std::vector<uint8_t> file = made.serialize();
    std::copy(file.end() - kDigestBytes, file.end(), made.fingerprint_.begin());
    made.blob_.resize(made.blob_.size() + kWide);
    return made;
}

// In lexicographic order a string shares with the one before it all the prefixes that it shares with any earlier one.
Status Dictionary::add_nodes(const std::vector<Bytes>& strings) {
    std::vector<uint32_t> path;  // the nodes of the prefixes of the last string
    const auto leave = [&](size_t depth, uint32_t next_id) {
        for (; path.size() > depth; path.pop_back()) {
            nodes_[path.back()].end = next_id;
            nodes_[path.back()].nodes_end = static_cast<uint32_t>(nodes_.size());
        }
    };
    for (uint32_t id = 0; id < strings.size(); ++id) {
        const Bytes text = strings[id];
        leave(id == 0 ? 0 : common_prefix(strings[id - 1], text), id);
        if (nodes_.size() + text.size() - path.size() > kMaxNodes) {
            return invalid_argument("the strings of a dictionary have more than " + std::to_string(kMaxNodes) +
                                    " distinct prefixes; give fewer or shorter ones");
        }
        while (path.size() < text.size()) {
            const uint32_t parent = path.empty() ? kNone : path.back();
            const bool is_string = path.size() + 1 == text.size();
            const uint32_t match = is_string ? id : nodes_[parent].match;  // single bytes are strings
            const auto length = static_cast<uint8_t>(path.size() + 1);
            path.push_back(static_cast<uint32_t>(nodes_.size()));
            nodes_.push_back({parent, id, 0, match, 0, 0, text[length - 1u], length});
        }
        node_of_id_.push_back(path.back());
    }
    leave(0, static_cast<uint32_t>(strings.size()));
    return {};
}

void Dictionary::fill_table() {
    std::vector<uint32_t> parents;
    std::vector<uint8_t> bytes;
    for (const Node& node : nodes_) {
        parents.push_back(node.parent == kNone ? TrieTable::kRoot : node.parent);
        bytes.push_back(node.byte);
    }
    table_ = TrieTable(parents, bytes);
    id_of_slot_.resize(table_.num_slots());
    excess_of_slot_.resize(table_.num_slots());
    for (Node& node : nodes_) {
        const uint8_t* next = &node.byte;
        const TrieTable::State state = node.parent == kNone
                                           ? table_.start(next, next + 1)
                                           : table_.step(table_.state_of(nodes_[node.parent].slot), node.byte);
        node.slot = TrieTable::slot(state);
        id_of_slot_[node.slot] = node.match;
        excess_of_slot_[node.slot] = static_cast<uint8_t>(node.length - lengths_[node.match]);
    }
}

void Dictionary::encode(Bytes text, size_t num_threads, std::vector<uint32_t>& ids) const {
    equal_info::parse_greedily(*this, text, num_threads, ids);
}

template <class Id>
Result<size_t> Dictionary::decoded_bytes(std::span<const Id> ids) const {
    size_t total = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
        const Id id = read_once(ids[i]);
        if (id >= size()) {
            return unknown_token("id " + std::to_string(id) + " at position " + std::to_string(i) +
                                 " is not one of the dictionary's " + std::to_string(size()));
        }
        total += lengths_[id];
    }
    return total;
}

template <class Id>
bool Dictionary::decode(std::span<const Id> ids, std::span<uint8_t> out) const {
    uint8_t* next = out.data();
    uint8_t* const end = next + out.size();
    size_t i = 0;
    // As many ids at a time as fit for certain, without a look at the room that is left.
    for (;;) {
        const size_t num_safe = std::min(ids.size() - i, static_cast<size_t>(end - next) / (kMaxLength + kWide));
        if (num_safe == 0) break;
        for (const size_t stop = i + num_safe; i < stop; ++i) {
            const size_t id = read_once(ids[i]);
            if (id >= size()) return false;
            const uint8_t* const text = blob_.data() + begins_[id];
            const size_t length = lengths_[id];
            std::memcpy(next, text, kWide);  // the next ids overwrite the excess bytes
            if (length > kWide) [[unlikely]]
                std::memcpy(next + kWide, text + kWide, length - kWide);
            next += length;
        }
    }
    for (; i < ids.size(); ++i) {
        const size_t id = read_once(ids[i]);
        if (id >= size()) return false;
        const Bytes text = string(static_cast<uint32_t>(id));
        if (text.size() > static_cast<size_t>(end - next)) return false;
        next = std::copy(text.begin(), text.end(), next);
    }
    return next == end;
}

template Result<size_t> Dictionary::decoded_bytes(std::span<const uint16_t>) const;
template Result<size_t> Dictionary::decoded_bytes(std::span<const uint32_t>) const;
template bool Dictionary::decode(std::span<const uint16_t>, std::span<uint8_t>) const;
template bool Dictionary::decode(std::span<const uint32_t>, std::span<uint8_t>) const;

std::vector<uint8_t> Dictionary::serialize() const {
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u32(static_cast<uint32_t>(size()));
    out.raw(lengths_);
    out.raw(Bytes(blob_).first(begins_.back() + size_t{lengths_.back()}));
    out.raw(sha256(out.bytes()));
    return out.take();
}

Result<Dictionary> Dictionary::parse(Bytes file) {
    if (file.size() < sizeof kMagic || !std::equal(std::begin(kMagic), std::end(kMagic), file.begin())) {
        return malformed("not a fastcompress dictionary (its first eight bytes are not 89 46 43 47 44 49 0D 0A)");
    }
    ByteReader in(file.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (in.ok() && version != kVersion) {
        return malformed("dictionary of format version " + std::to_string(version) +
                         "; this build reads version 1: update fastcompress");
    }
    if (in.remaining() < kDigestBytes) return malformed("truncated dictionary: copy the whole file again");
    const Sha256Digest digest = sha256(file.first(file.size() - kDigestBytes));
    if (!std::ranges::equal(digest, file.last(kDigestBytes))) {
        return malformed("dictionary with a wrong SHA-256: the file is truncated or damaged; copy it again");
    }
    in = ByteReader(file.subspan(sizeof kMagic + 4, file.size() - sizeof kMagic - 4 - kDigestBytes));
    const Bytes lengths = in.raw(in.u32());
    std::vector<Bytes> strings;
    strings.reserve(lengths.size());
    for (const uint8_t length : lengths) strings.push_back(in.raw(length));
    if (!in.ok() || in.remaining() > 0) return malformed("dictionary whose fields do not fit its length");
    Result<Dictionary> made = make(std::move(strings));
    if (!made.ok()) return malformed("inconsistent dictionary: " + made.status().message);
    return made;
}

}  // namespace fastcompress::greedy_dictionary
