#include <pybind11/stl.h>

#include <algorithm>

#include "bind.h"
#include "columns.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/greedy_dictionary/canonical_states.h"
#include "fastcompress/greedy_dictionary/dictionary.h"
#include "fastcompress/greedy_dictionary/trainer.h"

namespace fastcompress::bindings {
namespace {

using greedy_dictionary::CanonicalStates;
using greedy_dictionary::Dictionary;

template <class T>
using Ids = py::array_t<T, py::array::c_style>;

// The dictionary is shared with the states made of it.
class BoundDictionary {
  public:
    explicit BoundDictionary(Dictionary dictionary) : shared_(std::make_shared<Dictionary>(std::move(dictionary))) {}
    const Dictionary& operator*() const { return *shared_; }
    const Dictionary* operator->() const { return shared_.get(); }
    std::shared_ptr<const Dictionary> share() const { return shared_; }

  private:
    std::shared_ptr<const Dictionary> shared_;
};

size_t cores_or(size_t num_threads) {
    return num_threads == 0 ? default_num_threads() : num_threads;
}

BoundDictionary dictionary_from_strings(std::vector<std::string> strings) {
    return BoundDictionary(value_or_raise(without_gil([&] { return Dictionary::from_strings(std::move(strings)); })));
}

BoundDictionary parse_dictionary(const py::bytes& file) {
    const Bytes bytes = bytes_of(file);
    return BoundDictionary(value_or_raise(without_gil([&] { return Dictionary::parse(bytes); })));
}

BoundDictionary train_dictionary(py::handle texts, size_t size, uint32_t num_rounds, bool within_words,
                                 std::vector<std::string> start, size_t num_threads) {
    const std::vector<TextView> views = text_views(texts);
    const greedy_dictionary::TrainerSettings settings = {size, num_rounds, cores_or(num_threads), within_words};
    return BoundDictionary(value_or_raise(without_gil([&]() -> Result<Dictionary> {
        std::vector<Bytes> documents;
        for (const TextView& view : views) documents.push_back(view.bytes());
        auto strings = greedy_dictionary::train_dictionary(documents, settings, std::move(start));
        if (!strings.ok()) return strings.status();
        return Dictionary::from_strings(std::move(*strings));
    })));
}

py::array to_ids(std::vector<uint32_t> ids, bool as_uint16) {
    if (!as_uint16) return to_array(std::move(ids));
    return to_array(without_gil([&] { return std::vector<uint16_t>(ids.begin(), ids.end()); }));
}

py::array encode_text(const BoundDictionary& self, py::handle text, size_t num_threads, bool as_uint16) {
    const TextView view(text);
    std::vector<uint32_t> ids;
    without_gil([&] {
        ids.reserve(view.bytes().size() / 3);
        self->encode(view.bytes(), cores_or(num_threads), ids);
    });
    return to_ids(std::move(ids), as_uint16);
}

py::tuple encode_texts(const BoundDictionary& self, py::handle texts, size_t num_threads, bool as_uint16) {
    const std::vector<TextView> views = text_views(texts);
    std::vector<uint64_t> offsets(views.size() + 1);
    std::vector<uint32_t> joined;
    without_gil([&] {
        std::vector<std::vector<uint32_t>> parts(views.size());
        const auto weight = [&](size_t i) { return views[i].bytes().size() + 64; };
        parallel_parts(views.size(), cores_or(num_threads), weight, [&](size_t, size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) self->encode(views[i].bytes(), 1, parts[i]);
        });
        for (size_t i = 0; i < parts.size(); ++i) offsets[i + 1] = offsets[i] + parts[i].size();
        joined.reserve(offsets.back());
        for (const auto& part : parts) joined.insert(joined.end(), part.begin(), part.end());
    });
    return py::make_tuple(to_ids(std::move(joined), as_uint16), to_array(std::move(offsets)));
}

template <class Id>
py::bytes decode_ids(const BoundDictionary& self, const Ids<Id>& ids) {
    const std::span<const Id> span(ids.data(), static_cast<size_t>(ids.size()));
    const size_t size = value_or_raise(without_gil([&] { return self->decoded_bytes(span); }));
    py::bytes bytes = new_bytes(size);
    const std::span<uint8_t> out(writable(bytes), size);
    if (!without_gil([&] { return self->decode(span, out); })) {
        raise(invalid_data("the ids changed while they were decoded; do not write to arrays in use"));
    }
    return bytes;
}

py::list all_strings(const BoundDictionary& self) {
    py::list all(self->size());
    for (uint32_t id = 0; id < self->size(); ++id) all[id] = to_py_bytes(self->string(id));
    return all;
}

uint32_t checked_state(const CanonicalStates& self, uint64_t state) {
    if (state >= self.size()) {
        raise(invalid_argument("state is " + std::to_string(state) + "; it must be 0 to " +
                               std::to_string(self.size() - 1)));
    }
    return static_cast<uint32_t>(state);
}

// Returns the state after an id, or -1 if that is illegal.
int64_t advance(const CanonicalStates& self, uint64_t state, uint64_t id) {
    if (id >= self.dictionary().size()) {
        raise(unknown_token("id " + std::to_string(id) + " is not one of the dictionary's " +
                            std::to_string(self.dictionary().size())));
    }
    const auto after = self.advance(checked_state(self, state), static_cast<uint32_t>(id));
    return after ? int64_t{*after} : -1;
}

py::array_t<uint32_t> states_before(const CanonicalStates& self, uint64_t first, const Ids<uint32_t>& ids) {
    const std::span<const uint32_t> span(ids.data(), static_cast<size_t>(ids.size()));
    const uint32_t state = checked_state(self, first);
    std::vector<uint32_t> states;
    raise_if_failed(without_gil([&] {
        states.resize(span.size() + 1);
        return self.states_before(state, span, std::span(states));
    }));
    return to_array(std::move(states));
}

py::array_t<uint8_t> legal_rows(const CanonicalStates& self, const Ids<uint32_t>& states) {
    const auto num_states = static_cast<size_t>(states.size());
    std::vector<uint32_t> checked(num_states);
    for (size_t i = 0; i < num_states; ++i) checked[i] = checked_state(self, read_once(states.data()[i]));
    const size_t row_bytes = self.row_bytes();
    py::array_t<uint8_t> rows({num_states, row_bytes});
    const std::span<uint8_t> out(rows.mutable_data(), num_states * row_bytes);
    without_gil([&] {
        for (size_t i = 0; i < num_states; ++i) self.write_row(checked[i], out.subspan(i * row_bytes, row_bytes));
    });
    return rows;
}

}  // namespace

void bind_greedy_dictionary(py::module_& m) {
    py::module_ sub = m.def_submodule("greedy_dictionary");
    sub.attr("MAGIC") = to_py_bytes(Dictionary::kMagic);
    sub.attr("MIN_STRINGS") = py::int_(Dictionary::kMinStrings);
    sub.attr("MAX_STRINGS") = py::int_(Dictionary::kMaxStrings);
    sub.attr("MAX_LENGTH") = py::int_(Dictionary::kMaxLength);
    py::class_<BoundDictionary>(sub, "Dictionary")
        .def_property_readonly("fingerprint",
                               [](const BoundDictionary& self) { return to_py_bytes(self->fingerprint()); })
        .def("__len__", [](const BoundDictionary& self) { return self->size(); })
        .def("to_bytes", [](const BoundDictionary& self) { return to_py_bytes(self->serialize()); })
        .def("encode", &encode_text)
        .def("encode_batch", &encode_texts)
        .def("decode", &decode_ids<uint32_t>)
        .def("decode_uint16", &decode_ids<uint16_t>)
        .def("lengths", [](const BoundDictionary& self) { return to_array(std::vector<uint8_t>(self->lengths())); })
        .def("strings", &all_strings);
    py::class_<CanonicalStates>(sub, "CanonicalStates")
        .def(py::init([](const BoundDictionary& dictionary) {
            return without_gil([&] { return std::make_unique<CanonicalStates>(dictionary.share()); });
        }))
        .def("__len__", &CanonicalStates::size)
        .def_property_readonly("max_unstable_tokens", &CanonicalStates::max_unstable_tokens)
        .def("advance", &advance)
        .def("states_before", &states_before)
        .def("legal_rows", &legal_rows);
    sub.def("from_strings", &dictionary_from_strings);
    sub.def("parse", &parse_dictionary);
    sub.def("train", &train_dictionary);
}

}  // namespace fastcompress::bindings
