// What the bindings of the coder and the quantizer share: tables, symbols and weights as NumPy has them, checked.
#pragma once

#include <optional>

#include "bind.h"
#include "columns.h"
#include "fastcompress/arithmetic/quantizer.h"

namespace fastcompress::bindings {

// An array without a copy where its rows lie one after the other.
template <class T>
using CArray = py::array_t<T, py::array::c_style>;

void bind_quantizer(py::module_& sub);
void bind_frequencies(py::module_& sub);

// As Python gives it; none is the default one.
using Precision = std::optional<int64_t>;

// For an alphabet of so many symbols, or a ConfigError.
unsigned checked_precision(size_t num_symbols, Precision precision);

// Cumulative frequencies: one table for all symbols (one dimension) or a row a symbol (two).
class Tables {
  public:
    // TypeError for other types, a DataError for what is no table. Of rows only the first is looked at yet.
    explicit Tables(py::handle tables);

    // Whether rows [begin, end) are tables of one precision: a part at a time, so that a row is still in the cache when
    // it is coded with. May be called without the GIL.
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

// A matrix of weights, a row a symbol or one row, of a type that Quantizer::set_row takes.
class Weights {
  public:
    // TypeError or a ConfigError for what cannot be quantized at all.
    Weights(py::handle weights, Precision precision);

    size_t num_rows() const { return num_rows_; }
    size_t num_symbols() const { return num_symbols_; }
    unsigned precision() const { return precision_; }
    bool is_single() const { return array_.ndim() == 1; }
    const py::array& array() const { return array_; }
    // Makes row i the quantizer's.
    Status set_row(arithmetic::Quantizer& quantizer, size_t i) const { return set_row_(*this, quantizer, i); }

  private:
    template <class T>
    static Status set_typed_row(const Weights& weights, arithmetic::Quantizer& quantizer, size_t i);
    template <class T>
    void hold(py::handle weights);

    py::array array_;
    const void* data_ = nullptr;
    size_t num_rows_ = 0;
    size_t num_symbols_ = 0;
    unsigned precision_ = 0;
    Status (*set_row_)(const Weights&, arithmetic::Quantizer&, size_t) = nullptr;
};

// The quantizer for rows like those before it: its memory is kept from call to call.
class KeptQuantizer {
  public:
    arithmetic::Quantizer& of(const Weights& rows) {
        if (!kept_ || kept_->num_symbols() != rows.num_symbols() || kept_->precision() != rows.precision()) {
            kept_ = std::make_unique<arithmetic::Quantizer>(rows.num_symbols(), rows.precision());
        }
        return *kept_;
    }

  private:
    std::unique_ptr<arithmetic::Quantizer> kept_;
};

}  // namespace fastcompress::bindings
