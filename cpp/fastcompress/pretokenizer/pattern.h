// The named patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fastcompress::pretokenizer {

enum class Pattern : uint8_t {
    kGpt2,
    kCl100k,
    kO200k,
    kLlama3,
    kQwen2,
    kDeepSeekV3,
    kStrict,
    kWhitespace,
    kWords,
    kNone
};

struct PatternInfo {
    Pattern pattern;
    std::string_view name;  // the name in files and in the Python API
    // The regex whose matches are the pretokens, in the syntax of the Rust crate `fancy-regex`; empty for kNone.
    std::string_view regex;
};

// Another name under which users know a pattern.
struct PatternAlias {
    std::string_view alias;
    Pattern pattern;
};

// All named patterns, in the order of Pattern.
std::span<const PatternInfo> patterns();
const PatternInfo& info(Pattern pattern);
std::span<const PatternAlias> aliases();
// Returns the pattern of a name or alias; nullopt if it is unknown.
std::optional<Pattern> pattern_from_name(std::string_view name);

}  // namespace fastcompress::pretokenizer
