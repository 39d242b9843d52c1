// What the bindings share: one function a core, text and byte arguments without copies, statuses as Python errors.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/large_blocks.h"
#include "fastcompress/common/status.h"
#include "fastcompress/pretokenizer/pretokenizer.h"
#include "fastcompress/unicode/stored_text.h"

namespace fastcompress::bindings {

namespace py = pybind11;

void bind_pretokenizer(py::module_& m);
void bind_bpe(py::module_& m);
void bind_arithmetic(py::module_& m);
void bind_lz77(py::module_& m);
void bind_context_mixer(py::module_& m);
void bind_equal_info(py::module_& m);
void bind_archive(py::module_& m);

// Raises the class of fastcompress.errors that a status stands for.
[[noreturn]] void raise(const Status& status);

// Raises a class of fastcompress.errors by its name.
[[noreturn]] void raise_named(const char* name, const std::string& message);

inline void raise_if_failed(const Status& status) {
    if (!status.ok()) raise(status);
}

template <class T>
T value_or_raise(Result<T> result) {
    if (!result.ok()) raise(result.status());
    return std::move(*result);
}

// Runs body() with the GIL released and returns its result. No Python object may be touched inside.
template <class Body>
auto without_gil(const Body& body) {
    const py::gil_scoped_release unlocked;
    return body();
}

// The named pattern, or a ConfigError that lists the names.
pretokenizer::Pattern parse_pattern(std::string_view name);

// What becomes of the surrogates of a str, which UTF-8 cannot encode (errors.SurrogateError has the rule).
enum class Surrogates {
    kRefuse,   // SurrogateError: for all that must give the text back
    kReplace,  // a lone one becomes U+FFFD and a pair its character, as in tiktoken
};

// The bytes of a str (as UTF-8) or of any bytes-like object, for as long as the TextView lives. Of str and bytes, and of
// views of bytes, nothing is copied. Any other buffer is, even a read-only one: whoever owns the memory can change it
// while it is read. Built and destroyed with the GIL held; bytes() may be read without it.
class TextView {
  public:
    explicit TextView(py::handle text, Surrogates surrogates = Surrogates::kRefuse);
    Bytes bytes() const { return text_.memory; }

    // The same, with surrogates replaced, but a short str that is not ASCII is left as it is, to become UTF-8 when it is
    // read.
    static TextView as_stored(py::handle text);
    const unicode::StoredText& stored() const { return text_; }

  private:
    TextView() = default;
    py::object owner_;
    unicode::StoredText text_;
};

// The items of a sequence as they are now. Whatever Python code runs afterwards (a buffer's, an __index__) cannot change
// them, and they live as long as the tuple.
inline py::tuple items_of(py::handle sequence) {
    auto items = py::reinterpret_steal<py::tuple>(PySequence_Tuple(sequence.ptr()));
    if (!items) throw py::error_already_set();
    return items;
}

// The texts of a sequence, to be read without the GIL.
inline std::vector<TextView> text_views(py::handle texts) {
    const py::tuple items = items_of(texts);
    std::vector<TextView> views;
    views.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) views.emplace_back(items[i]);
    return views;
}

// Where the pretokens of a text end. O(n).
std::vector<uint64_t> pretoken_ends(pretokenizer::Pattern pattern, Bytes text);

// Bytes to be written once, by their maker.
inline py::bytes new_bytes(size_t size) {
    auto bytes = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
    if (!bytes) throw py::error_already_set();
    return bytes;
}
inline uint8_t* writable(const py::bytes& bytes) {
    return reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(bytes.ptr()));
}

inline Bytes bytes_of(const py::bytes& bytes) {
    return as_bytes(static_cast<std::string_view>(bytes));
}

inline py::bytes to_py_bytes(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Hands a vector to NumPy without a copy.
template <class T, class Allocator>
py::array_t<T> to_array(std::vector<T, Allocator> values) {
    using Vector = std::vector<T, Allocator>;
    auto owned = std::make_unique<Vector>(std::move(values));
    const T* data = owned->data();
    const auto size = static_cast<py::ssize_t>(owned->size());
    py::capsule owner(owned.get(), [](void* vector) { delete static_cast<Vector*>(vector); });
    owned.release();
    return py::array_t<T>(size, data, owner);
}

// The same for memory from std::malloc or LargeBlocks.
template <class T>
py::array_t<T> to_array(T* data, size_t size) {
    py::capsule owner(data, [](void* memory) { LargeBlocks::free(memory); });
    return py::array_t<T>(static_cast<py::ssize_t>(size), data, owner);
}

}  // namespace fastcompress::bindings
