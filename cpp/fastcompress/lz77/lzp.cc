#include "fastcompress/lz77/lzp.h"

#include <algorithm>

#include "fastcompress/common/read_once.h"
#include "fastcompress/lz77/history.h"

namespace fastcompress::lz77 {
namespace {

constexpr uint32_t kLargestLength = 1u << 30;

// Returns the position after the last earlier occurrence of the context; kNone if the context is new.
uint32_t predicted_source(const History& history) {
    const uint32_t order = history.gram().size();
    if (history.size() < order) return History::kNone;
    const size_t context = history.size() - order;
    uint32_t source = history.before(context);
    while (source != History::kNone && !history.equal_grams(source, context)) source = history.before(source);
    return source == History::kNone ? source : source + order;
}

}  // namespace

Status check(const LzpParams& params) {
    if (params.order == 0 || params.order > kMaxMinLength) {
        return invalid_argument("order is " + std::to_string(params.order) + "; it must be 1 to " +
                                std::to_string(kMaxMinLength));
    }
    if (params.min_length == 0) return invalid_argument("min_length is 0; it must be at least 1");
    if (params.max_length < params.min_length || params.max_length > kLargestLength) {
        return invalid_argument("max_length is " + std::to_string(params.max_length) + "; it must be min_length, " +
                                std::to_string(params.min_length) + ", to " + std::to_string(kLargestLength));
    }
    return {};
}

std::vector<uint32_t> lzp_encode(Bytes text, const LzpParams& params) {
    History history(params.order, kUnlimited);
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < text.size();) {
        const uint32_t source = predicted_source(history);
        const size_t most = std::min<size_t>(params.max_length, text.size() - i);
        const size_t length = source == History::kNone ? 0 : common_prefix(text.data() + source, text.data() + i, most);
        const bool is_match = length >= params.min_length;
        ids.push_back(is_match ? 256 + static_cast<uint32_t>(length) - params.min_length : text[i]);
        for (const size_t end = i + (is_match ? length : 1); i < end; ++i) history.push(text[i]);
    }
    return ids;
}

Result<std::vector<uint8_t>> lzp_decode(std::span<const uint32_t> ids, const LzpParams& params, size_t max_bytes) {
    History history(params.order, kUnlimited);
    std::vector<uint8_t> text;
    for (size_t i = 0; i < ids.size(); ++i) {
        const uint32_t id = read_once(ids[i]);  // another thread may change it
        const auto bad = [&](const std::string& what) {
            return malformed("id " + std::to_string(id) + " at position " + std::to_string(i) + " " + what);
        };
        if (id >= params.num_ids()) return bad("is not below " + std::to_string(params.num_ids()));
        const size_t length = id < 256 ? 1 : id - 256 + params.min_length;
        if (length > max_bytes - text.size()) {
            return bad("ends past the " + std::to_string(max_bytes) + " bytes that are allowed");
        }
        if (id < 256) {
            text.push_back(static_cast<uint8_t>(id));
            history.push(text.back());
            continue;
        }
        const uint32_t source = predicted_source(history);
        if (source == History::kNone) return bad("is a match where nothing is predicted");
        for (size_t k = 0; k < length; ++k) {
            text.push_back(text[source + k]);
            history.push(text.back());
        }
    }
    return text;
}

}  // namespace fastcompress::lz77
