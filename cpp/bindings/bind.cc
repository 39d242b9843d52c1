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
    const py::object type = py::module_::import("fastcompress.errors").attr(name);
    py::set_error(type, status.message.c_str());
    throw py::error_already_set();
}

namespace {

// tiktoken's way with text that UTF-8 cannot hold: surrogate pairs join, lone surrogates become U+FFFD.
py::object without_surrogates(py::handle text) {
    const auto utf16 =
        py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(text.ptr(), "utf-16-le", "surrogatepass"));
    if (!utf16) throw py::error_already_set();
    auto clean = py::reinterpret_steal<py::object>(
        PyUnicode_Decode(PyBytes_AS_STRING(utf16.ptr()), PyBytes_GET_SIZE(utf16.ptr()), "utf-16-le", "replace"));
    if (!clean) throw py::error_already_set();
    return clean;
}

}  // namespace

TextView::TextView(py::handle text) : owner_(py::reinterpret_borrow<py::object>(text)) {
    if (PyUnicode_Check(text.ptr())) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(owner_.ptr(), &size);
        if (!data && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            owner_ = without_surrogates(text);
            data = PyUnicode_AsUTF8AndSize(owner_.ptr(), &size);
        }
        if (!data) throw py::error_already_set();
        text_ = as_bytes({data, static_cast<size_t>(size)});
    } else if (PyBytes_Check(text.ptr())) {
        text_ = as_bytes({PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))});
    } else if (PyObject_CheckBuffer(text.ptr())) {
        buffer_ = py::reinterpret_borrow<py::buffer>(text).request();
        if (buffer_.itemsize != 1 || buffer_.ndim != 1 || (buffer_.size > 0 && buffer_.strides[0] != 1)) {
            throw py::type_error("expected contiguous bytes; convert with bytes(...)");
        }
        text_ = Bytes(static_cast<const uint8_t*>(buffer_.ptr), static_cast<size_t>(buffer_.size));
        if (!buffer_.readonly) {  // another thread could change it under our hands, and what caches learn from it
            owner_ = to_py_bytes(bytes());
            text_ = as_bytes({PyBytes_AS_STRING(owner_.ptr()), bytes().size()});
        }
    } else {
        throw py::type_error("expected str or bytes, not " + std::string(Py_TYPE(text.ptr())->tp_name));
    }
}

TextView TextView::as_stored(py::handle text) {
    constexpr Py_ssize_t kMaxChars = 1 << 17;  // longer ones may have to be cut, and are not worth a buffer
    PyObject* const str = text.ptr();
    if (!PyUnicode_Check(str)) return TextView(text);
#if PY_VERSION_HEX < 0x030c0000
    if (PyUnicode_READY(str) != 0) throw py::error_already_set();
#endif
    if (PyUnicode_IS_ASCII(str) || PyUnicode_GET_LENGTH(str) > kMaxChars) return TextView(text);
    TextView view;
    view.owner_ = py::reinterpret_borrow<py::object>(text);
    const auto char_bytes = static_cast<size_t>(PyUnicode_KIND(str));
    const auto num_bytes = static_cast<size_t>(PyUnicode_GET_LENGTH(str)) * char_bytes;
    view.text_ = {{static_cast<const uint8_t*>(PyUnicode_DATA(str)), num_bytes}, char_bytes};
    return view;
}

}  // namespace fastcompress::bindings
