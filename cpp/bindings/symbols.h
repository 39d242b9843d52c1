// Reads and checks symbols from Python: an int, bytes, or an array of integers of any width and byte order.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bind_arithmetic.h"

namespace fastcompress::bindings {

template <class Symbol>
void check_symbols(std::span<const Symbol> symbols, size_t num_symbols) {
    Symbol greatest = 0;
    for (const Symbol symbol : symbols) greatest = std::max(greatest, symbol);
    if (symbols.empty() || greatest < num_symbols) return;
    size_t i = 0;
    while (i + 1 < symbols.size() && symbols[i] < num_symbols) ++i;  // they may change meanwhile
    const Symbol symbol = read_once(symbols[i]);
    const bool is_negative = sizeof(Symbol) == 4 && static_cast<int64_t>(symbol) > std::numeric_limits<int32_t>::max();
    raise(invalid_data("symbol " + std::to_string(i) + " is " +
                       (is_negative ? "negative or above 2^31" : std::to_string(symbol)) +
                       "; the table has symbols 0 to " + std::to_string(num_symbols - 1)));
}

template <class Symbol, class Visit>
void visit_symbols(const py::array& symbols, size_t num_symbols, const Visit& visit) {
    const std::span<const Symbol> span(static_cast<const Symbol*>(symbols.data()), static_cast<size_t>(symbols.size()));
    check_symbols(span, num_symbols);
    visit(span);
}

// Checks that all symbols are below num_symbols, and calls visit() with a span of uint8_t, uint16_t or uint32_t. The
// span may be memory of the caller, which can change, so visit() must check what it reads.
template <class Visit>
void with_symbols(const py::array& any, size_t num_symbols, const Visit& visit) {
    const char kind = any.dtype().kind();
    if (any.ndim() != 1 || ((kind != 'u' && kind != 'i') && any.size() > 0)) {
        throw py::type_error("symbols must be an int or a one-dimensional array of integers");
    }
    // 0 if the array must be converted, because it has another byte order or is not aligned.
    const auto itemsize = is_native(any) && is_aligned(any) ? any.itemsize() : 0;
    const auto contiguous = (any.flags() & py::array::c_style) != 0 ? any : py::array::ensure(any, py::array::c_style);
    if (any.size() == 0) return visit(std::span<const uint32_t>());
    if (itemsize == 1 && kind == 'u') return visit_symbols<uint8_t>(contiguous, num_symbols, visit);
    if (itemsize == 2 && kind == 'u') return visit_symbols<uint16_t>(contiguous, num_symbols, visit);
    if (itemsize == 4)
        return visit_symbols<uint32_t>(contiguous, num_symbols, visit);  // negative ones are far too large
    const auto wide = py::array_t<int64_t, py::array::c_style | py::array::forcecast>::ensure(any);
    if (!wide) throw py::error_already_set();
    std::vector<uint32_t> narrow(static_cast<size_t>(wide.size()));
    for (size_t i = 0; i < narrow.size(); ++i) {
        const auto symbol = static_cast<uint64_t>(read_once(wide.data()[i]));
        narrow[i] = static_cast<uint32_t>(std::min<uint64_t>(symbol, std::numeric_limits<uint32_t>::max()));
    }
    check_symbols<uint32_t>(narrow, num_symbols);
    visit(std::span<const uint32_t>(narrow));
}

inline void check_num_rows(size_t num_rows, size_t num_symbols) {
    if (num_rows != num_symbols) {
        raise(invalid_data(std::to_string(num_symbols) + " symbols and " + std::to_string(num_rows) +
                           " rows; give one row per symbol, or one table for all"));
    }
}

// Whether it is a single symbol: an int, a NumPy integer, or a tensor of no dimension. (Arrays have __index__ as well.)
inline bool is_single(py::handle symbols) {
    if (PyLong_CheckExact(symbols.ptr())) return true;
    if (py::isinstance<py::array>(symbols)) return py::reinterpret_borrow<py::array>(symbols).ndim() == 0;
    return PyIndex_Check(symbols.ptr()) && !PySequence_Check(symbols.ptr());
}

// Returns the symbol of an object for which is_single() is true.
inline size_t single_symbol(py::handle given, size_t num_symbols) {
    const auto symbol = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
    if (!symbol) throw py::error_already_set();
    const size_t value = PyLong_AsSize_t(symbol.ptr());
    if (value == static_cast<size_t>(-1) && PyErr_Occurred()) PyErr_Clear();
    if (value >= num_symbols) {
        raise(invalid_data("symbol " + std::string(py::str(symbol)) + " is not one of the table's, 0 to " +
                           std::to_string(num_symbols - 1)));
    }
    return value;
}

inline py::array symbols_array(py::handle symbols) {
    if (PyBytes_Check(symbols.ptr())) return py::module_::import("numpy").attr("frombuffer")(symbols, "uint8");
    if (py::isinstance<py::array>(symbols)) return py::reinterpret_borrow<py::array>(symbols);
    auto any = py::array::ensure(symbols);
    if (!any) {
        PyErr_Clear();
        throw py::type_error("symbols must be an int or a one-dimensional array of integers");
    }
    return any;
}

}  // namespace fastcompress::bindings
