#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "bind.h"
#include "columns.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/equal_info/codebook.h"
#include "fastcompress/equal_info/codebook_encoder.h"
#include "fastcompress/equal_info/codebook_trainer.h"
#include "guarded_mixer.h"

namespace fastcompress::bindings {
namespace {

using equal_info::Codebook;
using equal_info::Document;
using pretokenizer::Pattern;

template <class T>
using Array = py::array_t<T, py::array::c_style>;

// Returns the pattern by which a codebook splits texts; nullopt if it does not.
std::optional<Pattern> pattern_of(std::string_view name) {
    if (name.empty()) return std::nullopt;
    const Pattern pattern = parse_pattern(name);
    if (pretokenizer::info(pattern).name != name) {
        raise(invalid_argument("pattern is '" + std::string(name) + "'; it must be the name '" +
                               std::string(pretokenizer::info(pattern).name) + "', not an alias"));
    }
    return pattern;
}

size_t threads_or_all(size_t num_threads) {
    return num_threads == 0 ? default_num_threads() : num_threads;
}

// A codebook and the pattern that it names.
class BoundCodebook {
  public:
    explicit BoundCodebook(Codebook book) : book_(std::move(book)), pattern_(pattern_of(book_.pattern())) {}

    const Codebook& book() const { return book_; }

    void encode_to(Bytes text, size_t num_threads, std::vector<uint32_t>& ids) const {
        if (pattern_) {
            equal_info::encode_within(book_.table(), text, pretoken_ends(*pattern_, text), num_threads, ids);
        } else {
            equal_info::encode(book_.table(), text, num_threads, ids);
        }
    }

  private:
    Codebook book_;
    std::optional<Pattern> pattern_;
};

BoundCodebook from_strings(unsigned bits, std::string pattern, std::vector<std::string> strings) {
    return BoundCodebook(value_or_raise(
        without_gil([&] { return Codebook::from_strings(bits, std::move(pattern), std::move(strings)); })));
}

BoundCodebook parse(const py::bytes& file) {
    const Bytes bytes = bytes_of(file);
    Codebook book = value_or_raise(without_gil([&] { return Codebook::parse(bytes); }));
    if (!book.pattern().empty()) {
        const auto pattern = pretokenizer::pattern_from_name(book.pattern());
        if (!pattern || pretokenizer::info(*pattern).name != book.pattern()) {
            raise(malformed("codebook for the pattern '" + book.pattern() + "', which this build does not know"));
        }
    }
    return BoundCodebook(std::move(book));
}

py::bytes to_bytes(const BoundCodebook& self) {
    return to_py_bytes(without_gil([&] { return self.book().serialize(); }));
}

py::array to_id_array(std::vector<uint32_t> ids, bool as_uint16) {
    if (!as_uint16) return to_array(std::move(ids));
    return to_array(without_gil([&] { return std::vector<uint16_t>(ids.begin(), ids.end()); }));
}

py::array encode(const BoundCodebook& self, py::handle text, size_t num_threads, bool as_uint16) {
    const TextView view(text);
    std::vector<uint32_t> ids;
    without_gil([&] {
        ids.reserve(view.bytes().size() / 4);
        self.encode_to(view.bytes(), threads_or_all(num_threads), ids);
    });
    return to_id_array(std::move(ids), as_uint16);
}

py::tuple encode_batch(const BoundCodebook& self, py::handle texts, size_t num_threads, bool as_uint16) {
    const std::vector<TextView> views = text_views(texts);
    std::vector<uint64_t> offsets(views.size() + 1);
    std::vector<uint32_t> joined;
    without_gil([&] {
        std::vector<std::vector<uint32_t>> parts(views.size());
        const auto weight = [&](size_t i) { return views[i].bytes().size() + 64; };
        parallel_parts(views.size(), threads_or_all(num_threads), weight, [&](size_t, size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) self.encode_to(views[i].bytes(), 1, parts[i]);
        });
        for (size_t i = 0; i < parts.size(); ++i) offsets[i + 1] = offsets[i] + parts[i].size();
        joined.reserve(offsets.back());
        for (const auto& part : parts) joined.insert(joined.end(), part.begin(), part.end());
    });
    return py::make_tuple(to_id_array(std::move(joined), as_uint16), to_array(std::move(offsets)));
}

template <class Id>
py::bytes decode(const BoundCodebook& self, const Array<Id>& ids) {
    const std::span<const Id> span(ids.data(), static_cast<size_t>(ids.size()));
    const size_t size = value_or_raise(without_gil([&] { return self.book().decoded_bytes(span); }));
    py::bytes bytes = new_bytes(size);
    const std::span<uint8_t> out(writable(bytes), size);
    if (!without_gil([&] { return self.book().decode(span, out); })) {
        raise(invalid_data("the ids changed while they were decoded; do not write to arrays in use"));
    }
    return bytes;
}

py::array_t<uint8_t> lengths(const BoundCodebook& self) {
    std::vector<uint8_t> values;
    for (const Codebook::Node& node : self.book().nodes()) values.push_back(node.length);
    return to_array(std::move(values));
}

py::array_t<uint8_t> last_bytes(const BoundCodebook& self) {
    std::vector<uint8_t> values;
    for (const Codebook::Node& node : self.book().nodes()) values.push_back(node.byte);
    return to_array(std::move(values));
}

uint32_t checked_id(const BoundCodebook& self, uint64_t id) {
    if (id >= self.book().size()) {
        raise(unknown_token("id " + std::to_string(id) + " is not one of the codebook's " +
                            std::to_string(self.book().size())));
    }
    return static_cast<uint32_t>(id);
}

py::list strings(const BoundCodebook& self) {
    py::list all(self.book().size());
    for (uint32_t id = 0; id < self.book().size(); ++id) all[id] = to_py_bytes(self.book().string(id));
    return all;
}

// Returns bool[n, 256]: the bytes that extend the string of each id to another string.
py::array_t<bool> extensions(const BoundCodebook& self, const Array<uint32_t>& ids) {
    py::array_t<bool> rows({static_cast<py::ssize_t>(ids.size()), py::ssize_t{256}});
    bool* row = rows.mutable_data();
    std::fill(row, row + rows.size(), false);
    for (py::ssize_t i = 0; i < ids.size(); ++i, row += 256) {
        for (const uint8_t byte : self.book().illegal_next_bytes(checked_id(self, read_once(ids.data()[i]))))
            row[byte] = true;
    }
    return rows;
}

struct Corpus {
    std::vector<TextView> views;
    std::vector<std::vector<uint64_t>> ends;
    std::vector<Document> documents;

    Corpus(py::handle texts, std::optional<Pattern> pattern) : views(text_views(texts)) {
        without_gil([&] {
            ends.resize(views.size());
            for (size_t i = 0; i < views.size(); ++i) {
                if (pattern) ends[i] = pretoken_ends(*pattern, views[i].bytes());
                documents.push_back({views[i].bytes(), ends[i]});
            }
        });
    }
};

BoundCodebook train(py::handle texts, unsigned bits, const std::string& pattern, uint32_t num_rounds, bool within_words,
                    const BoundCodebook* start, size_t num_threads) {
    const Corpus corpus(texts, pattern_of(pattern));
    const equal_info::TrainerSettings settings = {bits, num_rounds, threads_or_all(num_threads), within_words};
    return BoundCodebook(value_or_raise(without_gil([&]() -> Result<Codebook> {
        auto nodes = equal_info::train_codebook(corpus.documents, settings,
                                                start ? start->book().nodes() : std::vector<Codebook::Node>());
        if (!nodes.ok()) return nodes.status();
        return Codebook::make(bits, pattern, std::move(*nodes));
    })));
}

}  // namespace

void bind_equal_info(py::module_& m) {
    py::module_ sub = m.def_submodule("equal_info");
    sub.attr("MAGIC") = to_py_bytes(Codebook::kMagic);
    sub.attr("MIN_BITS") = py::int_(Codebook::kMinBits);
    sub.attr("MAX_BITS") = py::int_(Codebook::kMaxBits);
    sub.attr("MAX_LENGTH") = py::int_(Codebook::kMaxLength);
    py::class_<BoundCodebook>(sub, "Codebook")
        .def_property_readonly("bits", [](const BoundCodebook& self) { return self.book().bits(); })
        .def_property_readonly("pattern", [](const BoundCodebook& self) { return self.book().pattern(); })
        .def_property_readonly("fingerprint",
                               [](const BoundCodebook& self) { return to_py_bytes(self.book().fingerprint()); })
        .def("__len__", [](const BoundCodebook& self) { return self.book().size(); })
        .def("to_bytes", &to_bytes)
        .def("encode", &encode)
        .def("encode_batch", &encode_batch)
        .def("decode", &decode<uint32_t>)
        .def("decode_uint16", &decode<uint16_t>)
        .def("lengths", &lengths)
        .def("last_bytes", &last_bytes)
        .def("strings", &strings)
        .def("extensions", &extensions);
    sub.def("from_strings", &from_strings);
    sub.def("parse", &parse);
    sub.def("train", &train);
    bind_windows(sub);
}

}  // namespace fastcompress::bindings
