#include "fastcompress/lz77/buckets.h"

#include <algorithm>
#include <bit>

#include "fastcompress/common/read_once.h"
#include "fastcompress/lz77/reconstruct.h"

namespace fastcompress::lz77 {
namespace {

constexpr uint32_t kBitsOfExtra = BucketAlphabet::kBitsOfExtra;

// Returns the bucket of a number n >= 1, floor(log2 n), which is also its number of extra bits.
uint32_t bucket_of(uint64_t number) {
    return static_cast<uint32_t>(std::bit_width(number)) - 1;
}

uint32_t num_extra(uint32_t bucket) {
    return (bucket + kBitsOfExtra - 1) / kBitsOfExtra;
}

// Reads ids from any source. Each is loaded once, because another thread may change it.
class IdReader {
  public:
    IdReader(std::span<const uint32_t> ids, uint32_t first_extra) : ids_(ids), first_extra_(first_extra) {}

    // Moves on to the next id. Returns false at the end.
    bool next() {
        if (num_read_ == ids_.size()) return false;
        id_ = read_once(ids_[num_read_++]);
        return true;
    }
    uint32_t id() const { return id_; }
    size_t position() const { return num_read_ - 1; }
    Status bad(const std::string& what) const {
        return malformed("id " + std::to_string(id_) + " at position " + std::to_string(position()) + " " + what);
    }
    // Reads the extra bits of a bucket. Returns the number, which is at least 1, or 0 if the ids end first.
    Result<uint64_t> read_number(uint32_t bucket) {
        uint64_t number = 1;
        for (uint32_t left = bucket; left > 0;) {
            if (!next()) return uint64_t{0};
            const uint32_t bits = left % kBitsOfExtra == 0 ? kBitsOfExtra : left % kBitsOfExtra;
            const uint32_t extra = id_ - first_extra_;
            if (id_ < first_extra_ || extra >= 1u << bits) return bad("stands where extra bits belong");
            number = number << bits | extra;
            left -= bits;
        }
        return number;
    }

  private:
    std::span<const uint32_t> ids_;
    uint32_t first_extra_;
    size_t num_read_ = 0;
    uint32_t id_ = 0;
};

}  // namespace

BucketAlphabet::BucketAlphabet(const Params& params)
    : params_(params),
      num_lengths_(bucket_of(uint64_t{params.max_length} - params.min_length + 1) + 1),
      num_distances_(bucket_of(params.window) + 1) {}

uint32_t BucketAlphabet::most_ids() const {
    return 2 + num_extra(num_lengths_ - 1) + num_extra(num_distances_ - 1);
}

Status BucketAlphabet::check(const TokenColumns& tokens) const {
    for (size_t i = 0; i < tokens.size(); ++i) {
        const uint32_t value = tokens.values[i];
        const uint32_t length = tokens.lengths[i];
        if (Status status = check_token(tokens.kinds[i], value, length, i); !status.ok()) return status;
        if (tokens.kinds[i] == static_cast<uint8_t>(TokenKind::kLiteral)) continue;
        const auto bad = [&](const std::string& what) { return malformed("token " + std::to_string(i) + " " + what); };
        if (value > params_.window) {
            return bad("is a match of distance " + std::to_string(value) + "; the window is " +
                       std::to_string(params_.window));
        }
        if (length < params_.min_length || length > params_.max_length) {
            return bad("is a match of length " + std::to_string(length) + "; it must be min_length, " +
                       std::to_string(params_.min_length) + ", to max_length, " + std::to_string(params_.max_length));
        }
    }
    return {};
}

std::vector<uint32_t> BucketAlphabet::encode(const TokenColumns& tokens) const {
    std::vector<uint32_t> ids;
    ids.reserve(2 * tokens.size());
    const auto put = [&](uint32_t first_bucket, uint64_t number) {
        const uint32_t bucket = bucket_of(number);
        ids.push_back(first_bucket + bucket);
        for (uint32_t k = num_extra(bucket); k-- > 0;) {
            const uint64_t below = number & ((uint64_t{1} << bucket) - 1);
            ids.push_back(first_extra() +
                          static_cast<uint32_t>(below >> k * kBitsOfExtra & ((1u << kBitsOfExtra) - 1)));
        }
    };
    RepeatOffsets repeat_offsets;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const Token token = tokens[i];
        if (token.kind == TokenKind::kLiteral) {
            ids.push_back(token.value);
            continue;
        }
        put(first_length(), uint64_t{token.length} - params_.min_length + 1);
        const uint32_t index = repeat_offsets.find(token.value);
        if (index < kNumRepeatOffsets) {
            ids.push_back(first_repeat_offset() + index);
        } else {
            put(first_distance(), token.value);
        }
        repeat_offsets.use(index, token.value);
    }
    return ids;
}

Result<BucketAlphabet::Decoded> BucketAlphabet::decode(std::span<const uint32_t> ids) const {
    Decoded decoded;
    decoded.byte_lengths.assign(ids.size(), 0);
    RepeatOffsets repeat_offsets;
    IdReader reader(ids, first_extra());
    while (reader.next()) {
        if (reader.id() < kNumBytes) {
            decoded.tokens.push(Token::literal(static_cast<uint8_t>(reader.id())));
            decoded.byte_lengths[reader.position()] = 1;
            continue;
        }
        if (reader.id() >= first_repeat_offset()) return reader.bad("stands where a byte or a length belongs");
        const Result<uint64_t> number = reader.read_number(reader.id() - first_length());
        if (!number.ok()) return number.status();
        if (*number == 0) break;
        const uint64_t length = *number + params_.min_length - 1;
        if (length > params_.max_length) return reader.bad("ends a length above max_length");
        if (!reader.next()) break;
        const uint32_t id = reader.id();
        if (id < first_repeat_offset() || id >= first_extra()) return reader.bad("stands where a distance belongs");
        const bool is_repeat = id < first_distance();
        const Result<uint64_t> distance = is_repeat ? uint64_t{repeat_offsets[id - first_repeat_offset()]}
                                                    : reader.read_number(id - first_distance());
        if (!distance.ok()) return distance.status();
        if (*distance == 0) break;
        if (*distance > params_.window) return reader.bad("ends a distance above the window");
        const auto offset = static_cast<uint32_t>(*distance);
        decoded.tokens.push(Token::match(offset, static_cast<uint32_t>(length)));
        decoded.byte_lengths[reader.position()] = static_cast<int64_t>(length);
        repeat_offsets.use(repeat_offsets.find(offset), offset);
    }
    return decoded;
}

}  // namespace fastcompress::lz77
