#include "bind.h"

namespace fastcompress::bindings {

void raise(const Status& status) {
    const char* name = "FastcompressError";
    switch (status.code) {
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
        bytes_ = as_bytes({data, static_cast<size_t>(size)});
    } else if (PyBytes_Check(text.ptr())) {
        bytes_ = as_bytes({PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))});
    } else if (PyObject_CheckBuffer(text.ptr())) {
        buffer_ = py::reinterpret_borrow<py::buffer>(text).request();
        if (buffer_.itemsize != 1 || buffer_.ndim != 1 || (buffer_.size > 0 && buffer_.strides[0] != 1)) {
            throw py::type_error("expected contiguous bytes; convert with bytes(...)");
        }
        bytes_ = {static_cast<const uint8_t*>(buffer_.ptr), static_cast<size_t>(buffer_.size)};
        if (!buffer_.readonly) {  // another thread could change it under our hands, and what caches learn from it
            owner_ = to_py_bytes(bytes_);
            bytes_ = as_bytes({PyBytes_AS_STRING(owner_.ptr()), bytes_.size()});
        }
    } else {
        throw py::type_error("expected str or bytes, not " + std::string(Py_TYPE(text.ptr())->tp_name));
    }
}

}  // namespace fastcompress::bindings
