#include "fastcompress/bpe/vocabulary/rank_file.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 0xff;

constexpr std::array<uint8_t, 256> kBase64Values = [] {
    std::array<uint8_t, 256> values{};
    values.fill(kNoDigit);
    for (size_t i = 0; i < kBase64.size(); ++i) values[static_cast<uint8_t>(kBase64[i])] = static_cast<uint8_t>(i);
    return values;
}();

// The bytes at which Python's bytes.split() splits, except the line feed.
bool is_blank(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Decodes padded base64. Returns false if it is invalid. Ignores bits after the last whole byte.
bool decode_base64(Bytes digits, std::string& out) {
    if (digits.empty() || digits.size() % 4 != 0) return false;
    const size_t num_groups = digits.size() / 4;
    out.resize(num_groups * 3);
    uint32_t invalid = 0;
    const auto decode_group = [&](size_t group, size_t given) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; ++k) {
            const uint32_t value = k < given ? kBase64Values[digits[4 * group + k]] : 0u;
            invalid |= value;  // only kNoDigit has the highest bit
            bits = bits << 6 | value;
        }
        for (size_t k = 0; k < 3; ++k) out[3 * group + k] = static_cast<char>(bits >> (16 - 8 * k));
    };
    for (size_t group = 0; group + 1 < num_groups; ++group) decode_group(group, 4);
    const Bytes last = digits.last(2);
    const size_t padding = last[1] != '=' ? 0 : last[0] != '=' ? 1 : 2;
    decode_group(num_groups - 1, 4 - padding);
    out.resize(out.size() - padding);
    return invalid < 0x80;
}

void append_base64(Bytes bytes, std::string& out) {
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t given = std::min<size_t>(3, bytes.size() - i);
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < given ? bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; ++k) out += k <= given ? kBase64[bits >> (18 - 6 * k) & 63] : '=';
    }
}

struct Line {
    size_t number;  // from 1
    std::string token;
    size_t rank;
};

Status malformed_line(const Line& line, const std::string& what) {
    return malformed("line " + std::to_string(line.number) + ": " + what);
}

// Reads `base64 rank`.
Status parse_line(Bytes text, Line& line) {
    const auto skip = [&text](auto&& belongs) {
        size_t size = 0;
        while (size < text.size() && belongs(text[size])) ++size;
        const Bytes skipped = text.first(size);
        text = text.subspan(size);
        return skipped;
    };
    skip(is_blank);
    const Bytes digits = skip([](uint8_t c) { return !is_blank(c); });
    skip(is_blank);
    const Bytes rank = skip([](uint8_t c) { return c >= '0' && c <= '9'; });
    skip(is_blank);
    if (!decode_base64(digits, line.token) || rank.empty() || !text.empty()) {
        return malformed_line(line, "expected 'base64 rank'; is this a .tiktoken file?");
    }
    line.rank = 0;
    for (const uint8_t digit : rank) line.rank = std::min(line.rank * 10 + (digit - '0'), kMaxVocabularySize);
    if (line.token.empty() || line.rank >= kMaxVocabularySize) {
        return malformed_line(
            line, "the token is empty or its rank is not in [0, " + std::to_string(kMaxVocabularySize) + ")");
    }
    return {};
}

// Calls visit(line) for each line that is not blank, until a call returns an error.
template <class Visit>
Status for_each_line(Bytes file, const Visit& visit) {
    Line line{};
    for (size_t begin = 0; begin < file.size();) {
        const void* newline = std::memchr(file.data() + begin, '\n', file.size() - begin);
        const size_t end =
            newline ? static_cast<size_t>(static_cast<const uint8_t*>(newline) - file.data()) : file.size();
        const Bytes text = file.subspan(begin, end - begin);
        begin = end + 1;
        ++line.number;
        if (std::ranges::all_of(text, is_blank)) continue;
        if (Status status = parse_line(text, line); !status.ok()) return status;
        if (Status status = visit(line); !status.ok()) return status;
    }
    return {};
}

// Returns kInvalidArgument, with the reason, unless the ranks of a vocabulary's tokens determine its merges.
//
// A rank tells when a token is made, but not from which two parts. Suppose that every token except the bytes is the
// result of exactly one merge, that these merges are in the order of ids and merge tokens made earlier, and that the
// bytes of every token encode to it. Then ranks merge the same pairs: when a merge by rank makes token t, no pair of
// lower rank is left within the bytes of t, and until then those bytes went through the same merges as when they are
// encoded alone. So the pair is the one that the list merges into t.
Status check_merges_follow_ranks(const Vocabulary& vocabulary) {
    constexpr size_t kNotMade = ~size_t{0};
    const auto refuse = [](TokenId id, const std::string& why) {
        return invalid_argument("token " + std::to_string(id) + " " + why +
                                ", which a rank file cannot express: save() or to_huggingface() keep it");
    };
    std::vector<size_t> made(vocabulary.size(), kNotMade);  // by id: 1 + the index of the merge; 0 for bytes
    for (size_t byte = 0; byte < 256; ++byte) made[vocabulary.byte_token(static_cast<uint8_t>(byte))] = 0;
    const std::vector<Merge>& merges = vocabulary.merges();
    for (size_t i = 0; i < merges.size(); ++i) {
        const Merge& merge = merges[i];
        if (made[merge.result] != kNotMade) return refuse(merge.result, "is the result of two merges");
        if (i > 0 && merge.result < merges[i - 1].result) return refuse(merge.result, "has an id out of merge order");
        for (const TokenId part : {merge.left, merge.right}) {
            if (made[part] == kNotMade) return refuse(merge.result, "is merged from a token that is made later");
        }
        made[merge.result] = i + 1;
    }
    Encoder encoder(vocabulary);
    TokenBuffer ids;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
        if (!vocabulary.is_ordinary(id)) continue;
        if (made[id] == kNotMade) return refuse(id, "is the result of no merge");
        if (made[id] == 0) continue;
        ids.clear();
        encoder.encode_by_merges(vocabulary.token_bytes(id), ids);
        if (ids.size() != 1 || ids.tokens()[0] != id) return refuse(id, "is not what its own bytes encode to");
    }
    return {};
}

}  // namespace

Result<std::vector<std::string>> parse_rank_file(Bytes file) {
    // An upper bound, known before memory is allocated for the largest rank.
    const size_t max_tokens = static_cast<size_t>(std::ranges::count(file, '\n')) + 1;
    std::vector<std::string> tokens;
    tokens.reserve(std::min(max_tokens, file.size() / 7 + 1));  // a token takes at least "YQ== 0\n"
    auto error = for_each_line(file, [&](Line& line) -> Status {
        if (line.rank >= max_tokens + kMaxUnusedIds) {
            return invalid_argument("line " + std::to_string(line.number) + ": rank " + std::to_string(line.rank) +
                                    " in so short a file: at most " + std::to_string(kMaxUnusedIds) +
                                    " ids may be unused");
        }
        if (line.rank >= tokens.size()) tokens.resize(line.rank + 1);
        if (!tokens[line.rank].empty()) {
            return malformed_line(line, "the rank " + std::to_string(line.rank) + " stands on an earlier line too");
        }
        tokens[line.rank] = line.token;
        return {};
    });
    if (!error.ok()) return error;
    if (tokens.empty()) return malformed("is empty: expected lines of 'base64 rank'");
    return tokens;
}

Status find_repeated_token(Bytes file) {
    std::unordered_set<std::string> seen;
    return for_each_line(file, [&](Line& line) -> Status {
        if (seen.insert(line.token).second) return {};
        return malformed_line(line,
                              "the token of rank " + std::to_string(line.rank) + " stands on an earlier line too");
    });
}

Result<std::string> write_rank_file(const Vocabulary& vocabulary) {
    if (vocabulary.normalizer() != Normalizer::kNone || vocabulary.prefix_space() || !vocabulary.has_all_bytes()) {
        return invalid_argument(
            "the vocabulary changes text before it merges (a normalizer, a space put in front, bytes "
            "replaced), which a rank file cannot express: save() or to_huggingface() keep it");
    }
    if (vocabulary.order() == MergeOrder::kMerges) {
        if (Status status = check_merges_follow_ranks(vocabulary); !status.ok()) return status;
    }
    std::string out;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
        if (!vocabulary.is_ordinary(id)) continue;
        append_base64(vocabulary.token_bytes(id), out);
        out += ' ' + std::to_string(id) + '\n';
    }
    return out;
}

}  // namespace fastcompress::bpe
