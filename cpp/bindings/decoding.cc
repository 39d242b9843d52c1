#include "decoding.h"

#include <algorithm>

#include "fastcompress/bpe/encode/decoder.h"
#include "fastcompress/common/parallel.h"

namespace fastcompress::bindings {
namespace {

using bpe::TokenId;
using bpe::Vocabulary;

// From this many ids on, the GIL is released while they are decoded, and another thread is worth starting.
constexpr size_t kMinIdsToUnlock = size_t{1} << 12;

template <class Body>
auto without_gil_if(bool unlock, const Body& body) {
    return unlock ? without_gil(body) : body();
}

py::str to_py_str(Bytes bytes, const py::str& errors) {
    const char* const handler = PyUnicode_AsUTF8(errors.ptr());
    if (!handler) throw py::error_already_set();
    PyObject* text = PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(bytes.data()),
                                          static_cast<Py_ssize_t>(bytes.size()), handler);
    if (!text) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(text);
}

// The bytes of several sequences of ids, one after another.
struct DecodedBatch {
    std::unique_ptr<uint8_t[]> bytes;
    std::vector<size_t> offsets;  // sequence i is [offsets[i], offsets[i + 1])
    Bytes operator[](size_t i) const { return {bytes.get() + offsets[i], offsets[i + 1] - offsets[i]}; }
};

Result<DecodedBatch> decode_all(const Vocabulary& vocabulary, const std::vector<TokenView>& views, size_t num_threads) {
    DecodedBatch batch{nullptr, std::vector<size_t>(views.size() + 1, 0)};
    size_t num_ids = 0;
    for (size_t i = 0; i < views.size(); ++i) {
        Result<size_t> size = bpe::decoded_size(vocabulary, views[i].ids());
        if (!size.ok()) {
            return Status{size.status().code, "sequence " + std::to_string(i) + ": " + size.status().message};
        }
        batch.offsets[i + 1] = batch.offsets[i] + *size;
        num_ids += views[i].ids().size();
    }
    batch.bytes.reset(new uint8_t[batch.offsets.back()]);  // not cleared, because all of it is written
    std::vector<char> changed(views.size(), 0);
    const auto weight = [&](size_t i) { return batch.offsets[i + 1] - batch.offsets[i] + 16; };
    parallel_parts(views.size(), std::min(num_threads, 1 + num_ids / kMinIdsToUnlock), weight,
                   [&](size_t, size_t begin, size_t end) {
                       for (size_t i = begin; i < end; ++i) {
                           const size_t size = batch.offsets[i + 1] - batch.offsets[i];
                           Result<size_t> written =
                               bpe::decode_to(vocabulary, views[i].ids(), {&batch.bytes[batch.offsets[i]], size});
                           changed[i] = !written.ok() || *written != size;
                       }
                   });
    if (std::ranges::count(changed, 1) > 0) return invalid_data("the token ids changed while they were decoded");
    return batch;
}

template <class MakeItem>
py::list decode_batch(const Vocabulary& vocabulary, const py::list& batch, size_t num_threads,
                      const MakeItem& make_item) {
    std::vector<TokenView> views;
    views.reserve(batch.size());
    // By index: converting an id may run Python code that changes the list.
    for (size_t i = 0; i < batch.size(); ++i) views.emplace_back(py::object(batch[i]));
    const DecodedBatch decoded =
        value_or_raise(without_gil([&] { return decode_all(vocabulary, views, num_threads); }));
    py::list items(views.size());
    for (size_t i = 0; i < views.size(); ++i) items[i] = make_item(decoded[i]);
    return items;
}

}  // namespace

TokenId to_token_id(py::handle index, std::optional<size_t> position) {
    const auto where = [&] { return position ? " at position " + std::to_string(*position) : std::string(); };
    if (PyBool_Check(index.ptr()) || !PyIndex_Check(index.ptr())) {
        throw py::type_error("the token id" + where() + " is of type " + std::string(Py_TYPE(index.ptr())->tp_name) +
                             "; it must be an integer");
    }
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(index.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0 || value < 0 || value > 0xffffffffLL) {
        const py::object type = py::module_::import("fastcompress.errors").attr("TokenRangeError");
        py::set_error(type, ("token id " + std::string(py::str(number)) + where() + " is out of range").c_str());
        throw py::error_already_set();
    }
    return static_cast<TokenId>(value);
}

TokenView::TokenView(py::handle tokens) {
    using Array = py::array_t<TokenId, py::array::c_style>;
    if (py::isinstance<Array>(tokens) && py::reinterpret_borrow<py::array>(tokens).ndim() == 1) {
        const auto array = py::reinterpret_borrow<Array>(tokens);
        ids_ = {array.data(), static_cast<size_t>(array.size())};
        owner_ = array;
    } else {
        copy_ids(tokens);
        ids_ = copy_;
    }
}

void TokenView::copy_ids(py::handle sequence) {
    const auto items =
        py::reinterpret_steal<py::object>(PySequence_Fast(sequence.ptr(), "expected a sequence of token ids"));
    if (!items) throw py::error_already_set();
    copy_.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr())));
    // The size is read again each time, because __index__ of an item may change the list.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
        PyObject* const item = PySequence_Fast_GET_ITEM(items.ptr(), i);
        int overflow = 0;
        const long value = PyLong_CheckExact(item) ? PyLong_AsLongAndOverflow(item, &overflow) : -1;
        if (value >= 0 && static_cast<unsigned long>(value) <= 0xfffffffful) {
            copy_.push_back(static_cast<TokenId>(value));
        } else {
            copy_.push_back(to_token_id(py::reinterpret_borrow<py::object>(item), static_cast<size_t>(i)));
        }
    }
}

py::bytes decode_to_bytes(const Vocabulary& vocabulary, py::handle tokens) {
    const TokenView view(tokens);
    const bool unlock = view.ids().size() >= kMinIdsToUnlock;
    const size_t size =
        value_or_raise(without_gil_if(unlock, [&] { return bpe::decoded_size(vocabulary, view.ids()); }));
    py::bytes bytes = new_bytes(size);
    const std::span<uint8_t> out(writable(bytes), size);
    const size_t written =
        value_or_raise(without_gil_if(unlock, [&] { return bpe::decode_to(vocabulary, view.ids(), out); }));
    if (written != size) raise(invalid_data("the token ids changed while they were decoded"));
    return bytes;
}

py::str decode_to_str(const Vocabulary& vocabulary, py::handle tokens, const py::str& errors) {
    const TokenView view(tokens);
    const bool unlock = view.ids().size() >= kMinIdsToUnlock;
    const size_t size =
        value_or_raise(without_gil_if(unlock, [&] { return bpe::decoded_size(vocabulary, view.ids()); }));
    const std::unique_ptr<uint8_t[]> out(new uint8_t[size]);
    const size_t written = value_or_raise(without_gil_if(unlock, [&] {
        return bpe::decode_to(vocabulary, view.ids(), {out.get(), size});
    }));
    return to_py_str({out.get(), written}, errors);
}

py::list decode_batch_to_bytes(const Vocabulary& vocabulary, const py::list& batch, size_t num_threads) {
    return decode_batch(vocabulary, batch, num_threads, [](Bytes bytes) { return to_py_bytes(bytes); });
}

py::list decode_batch_to_str(const Vocabulary& vocabulary, const py::list& batch, const py::str& errors,
                             size_t num_threads) {
    return decode_batch(vocabulary, batch, num_threads, [&](Bytes bytes) { return to_py_str(bytes, errors); });
}

}  // namespace fastcompress::bindings
