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
    {Pattern::kLlama3, "llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::kQwen2, "qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    // One regex with the same matches as three regexes in turn (scanner_deepseek.h). Look-ahead tells the scripts
    // apart: alternatives 2 to 4 are for Han and kana, the others for all other characters. The fourth and the last
    // alternative match what the three regexes leave over.
    {Pattern::kDeepSeekV3, "deepseek-v3",
     R"re(\p{N}{1,3})re"
     R"re(|(?:(?=[\u3040-\u30ff\u4e00-\u9fa5])[^\p{L}\p{P}\p{S}])?(?:(?=[\u3040-\u30ff\u4e00-\u9fa5])[\p{L}\p{M}])+)re"
     R"re(|(?:(?=[\u3040-\u30ff\u4e00-\u9fa5])[\p{P}\p{S}])+)re"
     R"re(|(?:(?=[\u3040-\u30ff\u4e00-\u9fa5])[^\p{L}\p{M}\p{P}\p{S}](?!(?=[\u3040-\u30ff\u4e00-\u9fa5])[\p{L}\p{M}]))+)re"
     R"re(|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)re"
     R"re(|(?:(?![\u3040-\u30ff\u4e00-\u9fa5])[^\r\n\p{L}\p{N}\p{P}\p{S}])?(?:(?![\u3040-\u30ff\u4e00-\u9fa5])[\p{L}\p{M}])+)re"
     R"re(| ?(?:(?![\u3040-\u30ff\u4e00-\u9fa5])[\p{P}\p{S}])+[\r\n]*|\s*[\r\n]+|\s+(?![^\s\p{N}\u3040-\u30ff\u4e00-\u9fa5])|\s+)re"
     R"re(|(?:(?![\u3040-\u30ff\u4e00-\u9fa5])[^\s\p{L}\p{M}\p{N}\p{P}\p{S}](?!(?![\u3040-\u30ff\u4e00-\u9fa5])[\p{L}\p{M}]))+)re"},
    // Defined by this library: a pretoken with a letter consists of letters, their marks, and at most one space before
    // them.
    {Pattern::kStrict, "strict", R"( ?[\p{L}\p{M}]+|\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::kWhitespace, "whitespace", R"( ?\S+|\s+(?!\S)|\s+)"},
    // The split of codebooks and dictionaries that keep to words (common/words.h): all bytes from 0x80 on are letters.
    {Pattern::kWords, "words", R"( ?[^\x00-@\[-`{-\x7f]+| ?[0-9]+| ?[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]+|[ \t-\r]+)"},
    {Pattern::kNone, "none", ""},
};

constexpr PatternAlias kAliases[] = {
    {"r50k", Pattern::kGpt2},
    {"p50k", Pattern::kGpt2},
    {"qwen2.5", Pattern::kQwen2},
    {"qwen3", Pattern::kQwen2},
};

}  // namespace

std::span<const PatternInfo> patterns() {
    return kPatterns;
}

std::span<const PatternAlias> aliases() {
    return kAliases;
}

const PatternInfo& info(Pattern pattern) {
    return kPatterns[static_cast<size_t>(pattern)];
}

std::optional<Pattern> pattern_from_name(std::string_view name) {
    for (const PatternInfo& known : kPatterns) {
        if (known.name == name) return known.pattern;
    }
    for (const PatternAlias& known : kAliases) {
        if (known.alias == name) return known.pattern;
    }
    return std::nullopt;
}

}  // namespace fastcompress::pretokenizer
