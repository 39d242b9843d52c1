#include <pybind11/stl.h>

#include <algorithm>

#include "bind_arithmetic.h"
#include "fastcompress/arithmetic/exp2_tables.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bindings {

using arithmetic::Quantizer;

unsigned checked_precision(size_t num_symbols, Precision precision) {
    constexpr int64_t kTooLarge = 1000;
    const auto bits =
        static_cast<unsigned>(std::clamp<int64_t>(precision.value_or(arithmetic::kMaxPrecision), 0, kTooLarge));
    raise_if_failed(arithmetic::check_table_size(num_symbols, bits));
    return precision ? bits : arithmetic::default_precision(num_symbols);
}

Tables::Tables(py::handle tables) {
    if (CArray<uint32_t>::check_(tables)) {
        array_ = py::reinterpret_borrow<CArray<uint32_t>>(tables);
    } else {
        auto any = py::array::ensure(tables);
        if (!any || (any.dtype().kind() != 'u' && any.dtype().kind() != 'i') || any.itemsize() != 4) {
            PyErr_Clear();
            throw py::type_error("cumulative frequencies must be an array of uint32, as quantize() makes it");
        }
        array_ = py::array_t<uint32_t, py::array::c_style | py::array::forcecast>::ensure(any);
        if (!array_) throw py::error_already_set();
    }
    if (array_.ndim() < 1 || array_.ndim() > 2) {
        raise(invalid_data("cumulative frequencies have one dimension (one table) or two (one row per symbol), not " +
                           std::to_string(array_.ndim())));
    }
    if (row_size() < 2) raise(invalid_data("a table needs two cumulative frequencies or more: 0 and the total"));
    if (num_rows() == 0) return;
    const auto precision = arithmetic::check_cumulative({data(), row_size()});
    if (precision.ok()) {
        precision_ = *precision;
    } else if (is_single()) {
        raise(precision.status());
    }
}

Status Tables::check_rows(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
        const auto precision = arithmetic::check_cumulative({data() + i * row_size(), row_size()});
        if (precision.ok() && *precision == precision_) continue;
        const std::string row = "row " + std::to_string(i);
        if (!precision.ok()) return Status{precision.status().code, row + ": " + precision.status().message};
        return invalid_data(row + " sums to 2^" + std::to_string(*precision) + ", the rows before it to 2^" +
                            std::to_string(precision_) + "; give all of them one precision");
    }
    return {};
}

namespace {

[[gnu::always_inline]] inline void prefetch_bytes(const void* data, size_t num_bytes) {
    constexpr size_t kLine = 64, kMost = 4096;
    const auto* const bytes = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < std::min(num_bytes, kMost); i += kLine) prefetch(bytes + i);
}

}  // namespace

template <class T>
bool Weights::set_typed_row(const Weights& weights, Quantizer& quantizer, size_t i) {
    const T* const row = weights.typed_row<T>(i);
    // The next row is loaded while this one is processed.
    if (i + 1 < weights.num_rows_) prefetch_bytes(row + weights.num_symbols_, weights.num_symbols_ * sizeof(T));
    return quantizer.try_set_row(row);
}

template <class T>
Status Weights::typed_row_problem(const Weights& weights, const Quantizer& quantizer, size_t i) {
    Status problem = quantizer.row_problem(weights.typed_row<T>(i));
    if (!weights.is_single()) problem.message = "row " + std::to_string(i) + ": " + problem.message;
    return problem;
}

template <class T>
void Weights::hold(py::handle weights) {
    auto array = CArray<T>::check_(weights)
                     ? py::reinterpret_borrow<CArray<T>>(weights)
                     : CArray<T>(py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(weights));
    if (!array) throw py::error_already_set();
    data_ = array.data();
    array_ = std::move(array);
    set_row_ = &set_typed_row<T>;
    row_problem_ = &typed_row_problem<T>;
}

Weights::Weights(py::handle weights, Precision precision) {
    const auto any =
        py::isinstance<py::array>(weights) ? py::reinterpret_borrow<py::array>(weights) : py::array::ensure(weights);
    const char kind = any ? any.dtype().kind() : '?';
    const auto itemsize = any ? any.itemsize() : 0;
    if (kind == 'f' && itemsize <= 4) {
        hold<float>(any);
    } else if (kind == 'f' && itemsize == 8) {
        hold<double>(any);
    } else if (kind == 'u') {
        itemsize <= 4 ? hold<uint32_t>(any) : hold<uint64_t>(any);
    } else if (kind == 'i') {
        itemsize <= 4 ? hold<int32_t>(any) : hold<int64_t>(any);
    } else {
        PyErr_Clear();
        throw py::type_error("weights must be an array of integers or of floats of at most 64 bits");
    }
    if (array_.ndim() == 0) raise(invalid_argument("weights have no dimension; give one weight per symbol"));
    num_symbols_ = static_cast<size_t>(array_.shape(array_.ndim() - 1));
    precision_ = checked_precision(num_symbols_, precision);
    num_rows_ = static_cast<size_t>(array_.size()) / num_symbols_;
}

namespace {

// Returns an array of the shape of `rows`, except that the last dimension has V + 1 numbers.
py::array_t<uint32_t> table_array(const py::array& rows) {
    std::vector<py::ssize_t> shape(rows.shape(), rows.shape() + rows.ndim());
    ++shape.back();
    return py::array_t<uint32_t>(shape);
}

py::array_t<uint32_t> quantize(py::handle weights, Precision precision) {
    const Weights rows(weights, precision);
    auto tables = table_array(rows.array());
    uint32_t* const out = tables.mutable_data();
    const auto problem = without_gil([&]() -> Status {
        Quantizer quantizer(rows.num_symbols(), rows.precision());
        for (size_t i = 0; i < rows.num_rows(); ++i) {
            if (!rows.set_row(quantizer, i)) return rows.row_problem(quantizer, i);
            quantizer.cumulative(out + i * (rows.num_symbols() + 1));
        }
        return {};
    });
    raise_if_failed(problem);
    return tables;
}

py::array_t<uint32_t> quantize_logits(const CArray<int32_t>& logits, Precision wanted) {
    if (logits.ndim() == 0) raise(invalid_argument("logits have no dimension; give one per symbol"));
    const auto num_symbols = static_cast<size_t>(logits.shape(logits.ndim() - 1));
    const unsigned precision = checked_precision(num_symbols, wanted);
    auto tables = table_array(logits);
    uint32_t* const out = tables.mutable_data();
    const int32_t* const in = logits.data();
    const size_t num_rows = static_cast<size_t>(logits.size()) / num_symbols;
    without_gil([&] {
        Quantizer quantizer(num_symbols, precision);
        for (size_t i = 0; i < num_rows; ++i) {
            quantizer.set_row_of_logits(in + i * num_symbols);
            quantizer.cumulative(out + i * (num_symbols + 1));
        }
    });
    return tables;
}

}  // namespace

void bind_quantizer(py::module_& sub) {
    sub.attr("MAX_PRECISION") = py::int_(arithmetic::kMaxPrecision);
    sub.attr("MAX_SYMBOLS") = py::int_(arithmetic::kMaxSymbols);
    sub.def("default_precision", [](size_t num_symbols) { return checked_precision(num_symbols, std::nullopt); });
    sub.def("checked_precision", &checked_precision);
    sub.def("exp2_tables", [] {
        return py::make_tuple(py::array_t<uint32_t>(256, arithmetic::kExp2Coarse),
                              py::array_t<uint32_t>(256, arithmetic::kExp2Fine));
    });
    sub.def("quantize", &quantize);
    sub.def("quantize_logits", &quantize_logits);
}

}  // namespace fastcompress::bindings
