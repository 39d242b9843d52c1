#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

Status check(const Params& params) {
    const auto shown = [](uint32_t value) { return std::to_string(value); };
    if (params.window == 0) return invalid_argument("window is 0; it must be at least 1, or None");
    if (params.min_length == 0 || params.min_length > kMaxMinLength) {
        return invalid_argument("min_length is " + shown(params.min_length) + "; it must be 1 to " +
                                shown(kMaxMinLength));
    }
    if (params.max_length < params.min_length) {
        return invalid_argument("max_length is " + shown(params.max_length) + "; it must be at least min_length, " +
                                shown(params.min_length) + ", or None");
    }
    if (params.depth == 0) return invalid_argument("depth is 0; it must be at least 1, or None");
    if (params.rule != ParseRule::kGreedy && params.rule != ParseRule::kLazy) {
        return invalid_argument("parse is " + shown(static_cast<uint8_t>(params.rule)) +
                                "; it must be 0 ('greedy') or 1 ('lazy')");
    }
    return {};
}

}  // namespace fastcompress::lz77
