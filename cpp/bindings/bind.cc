#include "bind.h"

namespace fastcompress::bindings {

void raise(const Status& status) {
    const char* name = "FastcompressError";
    switch (status.code) {
        case StatusCode::kOk: break;
        case StatusCode::kInvalidArgument: name = "ConfigError"; break;
        case StatusCode::kInvalidData: name = "DataError"; break;
        case StatusCode::kUnknownToken: name = "UnknownTokenError"; break;
        case StatusCode::kMalformed: name = "FormatError"; break;
        case StatusCode::kFile: name = "OutputError"; break;
    }
    raise_named(name, status.message);
}

void raise_named(const char* name, const std::string& message) {
    const py::object type = py::module_::import("fastcompress.errors").attr(name);
    py::set_error(type, message.c_str());
    throw py::error_already_set();
}

namespace {

// Replaces surrogates as tiktoken does: a pair becomes its character, and a lone surrogate U+FFFD.
py::object without_surrogates(py::handle text) {
    const auto utf16 =
        py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(text.ptr(), "utf-16-le", "surrogatepass"));
    if (!utf16) throw py::error_already_set();
    auto clean = py::reinterpret_steal<py::object>(
        PyUnicode_Decode(PyBytes_AS_STRING(utf16.ptr()), PyBytes_GET_SIZE(utf16.ptr()), "utf-16-le", "replace"));
    if (!clean) throw py::error_already_set();
    return clean;
}

// Raises a SurrogateError in place of the UnicodeEncodeError that is set.
[[noreturn]] void raise_surrogate() {
    const py::error_already_set error;
    const py::object type = py::module_::import("fastcompress.errors").attr("SurrogateError");
    const py::object refused = type(*error.value().attr("args"));
    PyErr_SetObject(type.ptr(), refused.ptr());
    throw py::error_already_set();
}

// Returns the bytes object that a memoryview or a NumPy array is a view of, directly or through other views; null if
// there is none.
py::bytes bytes_behind(py::handle buffer) {
    constexpr int kMostViews = 32;
    auto owner = py::reinterpret_borrow<py::object>(buffer);
    for (int i = 0; i < kMostViews && owner; ++i) {
        if (PyBytes_Check(owner.ptr())) return owner;
        if (PyMemoryView_Check(owner.ptr())) {
            owner = py::reinterpret_borrow<py::object>(PyMemoryView_GET_BASE(owner.ptr()));
        } else if (py::isinstance<py::array>(owner)) {
            owner = py::reinterpret_borrow<py::array>(owner).base();
        } else {
            break;
        }
    }
    return py::reinterpret_steal<py::bytes>(py::handle());
}

bool lies_in(Bytes part, Bytes whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

TextView::TextView(py::handle text, Surrogates surrogates) : owner_(py::reinterpret_borrow<py::object>(text)) {
    if (PyUnicode_Check(text.ptr())) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(owner_.ptr(), &size);
        if (!data && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            if (surrogates == Surrogates::kRefuse) raise_surrogate();
            PyErr_Clear();
            owner_ = without_surrogates(text);
            data = PyUnicode_AsUTF8AndSize(owner_.ptr(), &size);
        }
        if (!data) throw py::error_already_set();
        text_ = as_bytes({data, static_cast<size_t>(size)});
    } else if (PyBytes_Check(text.ptr())) {
        text_ = bytes_of(py::reinterpret_borrow<py::bytes>(text));
    } else if (PyObject_CheckBuffer(text.ptr())) {
        const py::buffer_info buffer = py::reinterpret_borrow<py::buffer>(text).request();
        if (buffer.itemsize != 1 || buffer.ndim != 1 || (buffer.size > 0 && buffer.strides[0] != 1)) {
            throw py::type_error("expected contiguous bytes; convert with bytes(...)");
        }
        const Bytes shown(static_cast<const uint8_t*>(buffer.ptr), static_cast<size_t>(buffer.size));
        if (const auto bytes = bytes_behind(text); bytes && lies_in(shown, bytes_of(bytes))) {
            owner_ = bytes;
            text_ = shown;
        } else {
            owner_ = to_py_bytes(shown);
            text_ = bytes_of(py::reinterpret_borrow<py::bytes>(owner_));
        }
    } else {
        throw py::type_error("expected str or bytes, not " + std::string(Py_TYPE(text.ptr())->tp_name));
    }
}

TextView TextView::as_stored(py::handle text) {
    constexpr Py_ssize_t kMaxChars = 1 << 17;  // longer texts may have to be cut, and gain little from a buffer
    PyObject* const str = text.ptr();
    if (!PyUnicode_Check(str)) return TextView(text, Surrogates::kReplace);
#if PY_VERSION_HEX < 0x030c0000
    if (PyUnicode_READY(str) != 0) throw py::error_already_set();
#endif
    if (PyUnicode_IS_ASCII(str) || PyUnicode_GET_LENGTH(str) > kMaxChars) return TextView(text, Surrogates::kReplace);
    TextView view;
    view.owner_ = py::reinterpret_borrow<py::object>(text);
    const auto char_bytes = static_cast<size_t>(PyUnicode_KIND(str));
    const auto num_bytes = static_cast<size_t>(PyUnicode_GET_LENGTH(str)) * char_bytes;
    view.text_ = {{static_cast<const uint8_t*>(PyUnicode_DATA(str)), num_bytes}, char_bytes};
    return view;
}

}  // namespace fastcompress::bindings
