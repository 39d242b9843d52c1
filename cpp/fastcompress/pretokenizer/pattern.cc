#include "fastcompress/pretokenizer/pattern.h"

namespace fastcompress::pretokenizer {
namespace {

constexpr PatternInfo kPatterns[] = {
    {Pattern::kGpt2, "gpt2", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {Pattern::kCl100k, "cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {Pattern::kO200k, "o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::kWhitespace, "whitespace", R"( ?\S+|\s+(?!\S)|\s+)"},
    {Pattern::kNone, "none", ""},
};

}  // namespace

std::span<const PatternInfo> patterns() {
    return kPatterns;
}

const PatternInfo& info(Pattern pattern) {
    return kPatterns[static_cast<size_t>(pattern)];
}

std::optional<Pattern> pattern_from_name(std::string_view name) {
    for (const PatternInfo& known : kPatterns) {
        if (known.name == name) return known.pattern;
    }
    return std::nullopt;
}

}  // namespace fastcompress::pretokenizer
