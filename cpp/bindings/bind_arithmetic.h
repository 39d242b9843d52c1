// Shared by the bindings of the coder and the quantizer: checked tables and weights in NumPy arrays.
#pragma once

#include <optional>

#include "bind.h"
#include "columns.h"
#include "fastcompress/arithmetic/quantizer.h"

namespace fastcompress::bindings {

// A C-contiguous array. Other arrays are copied.
template <class T>
using CArray = py::array_t<T, py::array::c_style>;

void bind_quantizer(py::module_& sub);
void bind_frequencies(py::module_& sub);

// A precision from Python; None for the default.
using Precision = std::optional<int64_t>;

// Returns the precision for an alphabet of this size. Raises ConfigError if it is out of range.
unsigned checked_precision(size_t num_symbols, Precision precision);

// Cumulative frequencies: one table for all symbols (one dimension), or one row per symbol (two dimensions).
class Tables {
  public:
    // Raises TypeError for other types, and DataError for an invalid table. Checks only the first of several rows.
    explicit Tables(py::handle tables);

    // Checks that the rows [begin, end) are tables of the same precision. Called for a few rows at a time, so that they
    // are still in the cache when they are used. Can be called without the GIL.
    Status check_rows(size_t begin, size_t end) const;

    bool is_single() const { return array_.ndim() == 1; }
    size_t num_rows() const { return is_single() ? 1 : static_cast<size_t>(array_.shape(0)); }
    size_t row_size() const { return static_cast<size_t>(array_.shape(array_.ndim() - 1)); }
    size_t num_symbols() const { return row_size() - 1; }
    const uint32_t* data() const { return array_.data(); }
    unsigned precision() const { return precision_; }

  private:
    CArray<uint32_t> array_;
    unsigned precision_ = 0;
};

// A matrix of weights, one row per symbol or one row, of a type that Quantizer::set_row takes.
class Weights {
  public:
    // Raises TypeError or ConfigError if the type or the shape cannot be quantized.
    Weights(py::handle weights, Precision precision);

    size_t num_rows() const { return num_rows_; }
    size_t num_symbols() const { return num_symbols_; }
    unsigned precision() const { return precision_; }
    bool is_single() const { return array_.ndim() == 1; }
    const py::array& array() const { return array_; }
    // Makes row i the current row of the quantizer. Returns false if it cannot be quantized; row_problem() says why.
    [[nodiscard]] bool set_row(arithmetic::Quantizer& quantizer, size_t i) const {
        return set_row_(*this, quantizer, i);
    }
    Status row_problem(const arithmetic::Quantizer& quantizer, size_t i) const {
        return row_problem_(*this, quantizer, i);
    }

  private:
    template <class T>
    const T* typed_row(size_t i) const {
        return static_cast<const T*>(data_) + i * num_symbols_;
    }
    template <class T>
    static bool set_typed_row(const Weights& weights, arithmetic::Quantizer& quantizer, size_t i);
    template <class T>
    static Status typed_row_problem(const Weights& weights, const arithmetic::Quantizer& quantizer, size_t i);
    template <class T>
    void hold(py::handle weights);

    py::array array_;
    const void* data_ = nullptr;
    size_t num_rows_ = 0;
    size_t num_symbols_ = 0;
    unsigned precision_ = 0;
    bool (*set_row_)(const Weights&, arithmetic::Quantizer&, size_t) = nullptr;
    Status (*row_problem_)(const Weights&, const arithmetic::Quantizer&, size_t) = nullptr;
};

// Keeps a quantizer from call to call, so that its memory is reused for rows of the same size and precision.
class KeptQuantizer {
  public:
    arithmetic::Quantizer& for_rows(const Weights& rows) {
        if (!kept_ || kept_->num_symbols() != rows.num_symbols() || kept_->precision() != rows.precision()) {
            kept_ = std::make_unique<arithmetic::Quantizer>(rows.num_symbols(), rows.precision());
        }
        return *kept_;
    }

  private:
    std::unique_ptr<arithmetic::Quantizer> kept_;
};

}  // namespace fastcompress::bindings
