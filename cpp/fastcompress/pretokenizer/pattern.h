// The named patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fastcompress::pretokenizer {

enum class Pattern : uint8_t { kGpt2, kCl100k, kO200k, kWhitespace, kNone };

struct PatternInfo {
    Pattern pattern;
    std::string_view name;   // as files and the Python API spell it
    std::string_view regex;  // in the syntax of the Rust crate `regex` with possessive quantifiers; empty for kNone
};

// Every named pattern, in the order of Pattern.
std::span<const PatternInfo> patterns();
const PatternInfo& info(Pattern pattern);
std::optional<Pattern> pattern_from_name(std::string_view name);

}  // namespace fastcompress::pretokenizer
