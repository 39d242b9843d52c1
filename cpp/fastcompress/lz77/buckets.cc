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
    size_t i = 0;
    uint32_t id = 0;  // ids[i], loaded once: another thread may change it
    const auto bad = [&](const std::string& what) {
        return malformed("id " + std::to_string(id) + " at position " + std::to_string(i) + " " + what);
    };
    // Reads the extra bits of a bucket. Returns the number, or 0 if the ids end first.
    const auto read = [&](uint32_t bucket, Status& problem) -> uint64_t {
        uint64_t number = 1;
        for (uint32_t left = bucket; left > 0;) {
            if (++i == ids.size()) return 0;
            const uint32_t bits = left % kBitsOfExtra == 0 ? kBitsOfExtra : left % kBitsOfExtra;
            id = read_once(ids[i]);
            const uint32_t extra = id - first_extra();
            if (id < first_extra() || extra >= 1u << bits) {
                problem = bad("stands where extra bits belong");
                return 0;
            }
            number = number << bits | extra;
            left -= bits;
        }
        return number;
    };
    for (; i < ids.size(); ++i) {
        Status problem;
        id = read_once(ids[i]);
        if (id < kNumBytes) {
            decoded.tokens.push(Token::literal(static_cast<uint8_t>(id)));
            decoded.byte_lengths[i] = 1;
            continue;
        }
        if (id >= first_repeat_offset()) return bad("stands where a byte or a length belongs");
        const uint64_t length = read(id - first_length(), problem) + params_.min_length - 1;
        if (!problem.ok()) return problem;
        if (i == ids.size()) break;
        if (length > params_.max_length) return bad("ends a length above max_length");
        if (++i == ids.size()) break;
        id = read_once(ids[i]);
        if (id < first_repeat_offset() || id >= first_extra()) return bad("stands where a distance belongs");
        const bool is_repeat = id < first_distance();
        const uint64_t distance =
            is_repeat ? repeat_offsets[id - first_repeat_offset()] : read(id - first_distance(), problem);
        if (!problem.ok()) return problem;
        if (i == ids.size()) break;
        if (distance > params_.window) return bad("ends a distance above the window");
        decoded.tokens.push(Token::match(static_cast<uint32_t>(distance), static_cast<uint32_t>(length)));
        decoded.byte_lengths[i] = static_cast<int64_t>(length);
        repeat_offsets.use(repeat_offsets.find(static_cast<uint32_t>(distance)), static_cast<uint32_t>(distance));
    }
    return decoded;
}

}  // namespace fastcompress::lz77
