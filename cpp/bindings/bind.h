// Shared by all bindings: one function per core, arguments of text and bytes without copies, statuses as Python errors.
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
void bind_greedy_dictionary(py::module_& m);
void bind_archive(py::module_& m);

// Raises the exception of fastcompress.errors for a status.
[[noreturn]] void raise(const Status& status);

// Raises the exception of fastcompress.errors with this name.
[[noreturn]] void raise_named(const char* name, const std::string& message);

inline void raise_if_failed(const Status& status) {
    if (!status.ok()) raise(status);
}

template <class T>
T value_or_raise(Result<T> result) {
    if (!result.ok()) raise(result.status());
    return std::move(*result);
}

// Runs body() with the GIL released and returns its result. The body must not touch any Python object.
template <class Body>
auto without_gil(const Body& body) {
    const py::gil_scoped_release unlocked;
    return body();
}

// Returns the pattern of a name. Raises a ConfigError that lists the names if it is unknown.
pretokenizer::Pattern parse_pattern(std::string_view name);

// The treatment of the surrogates of a str, which UTF-8 cannot encode (errors.SurrogateError states the rule).
enum class Surrogates {
    kRefuse,   // raise SurrogateError: where the text must be recoverable
    kReplace,  // replace a lone one with U+FFFD and a pair with its character, as tiktoken does
};

// The bytes of a str (as UTF-8) or of any bytes-like object, valid as long as the TextView lives. A str, a bytes
// object, or a view of bytes is not copied. Any other buffer is copied, even a read-only one, because its owner could
// change the memory while it is read. Must be created and destroyed with the GIL held; bytes() can be read without it.
class TextView {
  public:
    explicit TextView(py::handle text, Surrogates surrogates = Surrogates::kRefuse);
    Bytes bytes() const { return text_.memory; }

    // The same with surrogates replaced, except that a short str that is not ASCII is kept as it is, and converted to
    // UTF-8 when it is read.
    static TextView as_stored(py::handle text);
    const unicode::StoredText& stored() const { return text_; }

  private:
    TextView() = default;
    py::object owner_;
    unicode::StoredText text_;
};

// Returns the present items of a sequence. Python code that runs later (that of a buffer, or an __index__) cannot
// change them, and they live as long as the tuple.
inline py::tuple items_of(py::handle sequence) {
    auto items = py::reinterpret_steal<py::tuple>(PySequence_Tuple(sequence.ptr()));
    if (!items) throw py::error_already_set();
    return items;
}

// Returns views of the texts of a sequence, which can be read without the GIL.
inline std::vector<TextView> text_views(py::handle texts) {
    const py::tuple items = items_of(texts);
    std::vector<TextView> views;
    views.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) views.emplace_back(items[i]);
    return views;
}

// Returns the offsets at which the pretokens of a text end. O(n).
std::vector<uint64_t> pretoken_ends(pretokenizer::Pattern pattern, Bytes text);

// Returns uninitialized bytes, which the caller must write before anything else sees them.
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

// Converts a vector to a NumPy array without a copy.
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
