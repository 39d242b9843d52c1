#include <pybind11/stl.h>

#include "bind.h"
#include "fastcompress/pretokenizer/pretokenizer.h"
#include "fastcompress/unicode/char_class.h"
#include "fastcompress/unicode/nfc.h"
#include "fastcompress/unicode/text_tables.h"

namespace fastcompress::bindings {
namespace {

py::array_t<uint64_t> split_ends(py::handle text, std::string_view pattern) {
    const TextView view(text, Surrogates::kReplace);
    const pretokenizer::Pattern parsed = parse_pattern(pattern);
    return to_array(without_gil([&] { return pretoken_ends(parsed, view.bytes()); }));
}

py::bytes normalize_nfc(py::handle text) {
    const TextView view(text, Surrogates::kReplace);
    std::vector<uint8_t> out;
    const bool changed = without_gil([&] { return unicode::normalize_nfc(view.bytes(), out); });
    return to_py_bytes(changed ? Bytes(out) : view.bytes());
}

}  // namespace

std::vector<uint64_t> pretoken_ends(pretokenizer::Pattern pattern, Bytes text) {
    std::vector<uint64_t> ends;
    uint64_t end = 0;
    pretokenizer::for_each_pretoken(pattern, text, [&](Bytes pretoken) { ends.push_back(end += pretoken.size()); });
    return ends;
}

pretokenizer::Pattern parse_pattern(std::string_view name) {
    if (const auto pattern = pretokenizer::pattern_from_name(name)) return *pattern;
    std::string known;
    for (const auto& info : pretokenizer::patterns()) known += (known.empty() ? "" : ", ") + std::string(info.name);
    // The message shows only the beginning of a text that was passed in place of a pattern.
    size_t num_shown = std::min<size_t>(name.size(), 100);
    while (num_shown < name.size() && (name[num_shown] & 0xc0) == 0x80) --num_shown;
    std::string message = "unknown pattern '";
    message.append(name.substr(0, num_shown)).append(num_shown < name.size() ? "..." : "");
    raise(invalid_argument(message.append("'; the named patterns are ").append(known)));
}

void bind_pretokenizer(py::module_& m) {
    py::module_ sub = m.def_submodule("pretokenizer");
    py::dict patterns;
    for (const auto& info : pretokenizer::patterns()) patterns[py::str(info.name)] = py::str(info.regex);
    sub.attr("PATTERNS") = patterns;
    py::dict aliases;
    for (const auto& [alias, pattern] : pretokenizer::aliases()) {
        aliases[py::str(alias)] = py::str(pretokenizer::info(pattern).name);
    }
    sub.attr("ALIASES") = aliases;
    sub.attr("UNICODE_VERSION") = py::str(static_cast<const char*>(unicode::kUnicodeVersion));
    sub.def("split_ends", &split_ends, py::arg("text"), py::arg("pattern"),
            "Return the byte offsets at which the pretokens of a text end, uint64[n].");
    py::list assigned;
    for (const auto& range : unicode::kAssignedRanges) assigned.append(py::make_tuple(range.first, range.last));
    sub.attr("ASSIGNED") = assigned;
    sub.def("normalize_nfc", &normalize_nfc, py::arg("text"),
            "Return a text in Unicode normalization form C, as UTF-8.");
}

}  // namespace fastcompress::bindings
