// Arrays of integers from Python (ids, the columns of tokens), without lossy casts.
//
// Takes any array of integers, of any width, byte order and layout, and any sequence that NumPy converts to one.
// Anything else is a ColumnError, which is both a FormatError, since such data may come from a file, and a TypeError.
// Callers report numbers that do not fit, with their position, because they know the meaning of the numbers.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind.h"
#include "fastcompress/common/read_once.h"

namespace fastcompress::bindings {

// Whether an array has the byte order of this machine.
inline bool is_native(const py::array& array) {
    return array.dtype().byteorder() == '=' || array.dtype().byteorder() == '|';
}
inline bool is_aligned(const py::array& array) {
    return (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
}

// One row of integers as T, an unsigned type. An array of T is not copied, and may change while it is read; others are
// copied. Must be created and destroyed with the GIL held.
template <class T>
class IntColumn {
  public:
    IntColumn(py::handle given, const char* name) : name_(name), owner_(py::array::ensure(given)) {
        if (!owner_) {
            PyErr_Clear();
            raise_named("ColumnError", name_ + " must be one row of integers");
        }
        const char kind = owner_.dtype().kind();
        if (owner_.ndim() != 1 || (kind != 'u' && kind != 'i' && owner_.size() > 0)) {
            raise_named("ColumnError", name_ + " is " + std::string(py::str(owner_.dtype())) + " of " +
                                           std::to_string(owner_.ndim()) +
                                           " dimension(s); it must be one row of integers");
        }
        const auto size = static_cast<size_t>(owner_.size());
        first_bad_ = size;
        const bool is_ready = kind == 'u' && owner_.itemsize() == sizeof(T) && is_native(owner_) &&
                              is_aligned(owner_) && (owner_.flags() & py::array::c_style) != 0;
        if (size == 0) return;
        if (is_ready) {
            values_ = {static_cast<const T*>(owner_.data()), size};
        } else if (kind == 'u') {
            convert<uint64_t>();
        } else {
            convert<int64_t>();
        }
    }

    std::span<const T> values() const { return values_; }
    size_t size() const { return values_.size(); }
    // The index of the first number that does not fit T, or size().
    size_t first_bad() const { return first_bad_; }
    const std::string& name() const { return name_; }
    // Returns the error message for the number at first_bad().
    std::string bad_message() const {
        return name_ + "[" + std::to_string(first_bad_) + "] is " + bad_number_ + "; it must be 0 to " +
               std::to_string(std::numeric_limits<T>::max());
    }
    // Returns the values. Raises FormatError if a number does not fit.
    std::span<const T> checked() const {
        if (first_bad_ < size()) raise(malformed(bad_message()));
        return values_;
    }

  private:
    template <class Wide>
    void convert() {
        const auto wide = py::array_t<Wide, py::array::c_style | py::array::forcecast>::ensure(owner_);
        if (!wide) throw py::error_already_set();
        copy_.resize(static_cast<size_t>(wide.size()));
        for (size_t i = 0; i < copy_.size(); ++i) {
            const Wide number = read_once(wide.data()[i]);
            if (!std::in_range<T>(number) && first_bad_ == copy_.size()) {
                first_bad_ = i;
                bad_number_ = std::to_string(number);
            }
            copy_[i] = static_cast<T>(number);  // meaningless from first_bad_ on
        }
        values_ = copy_;
    }

    std::string name_;
    py::array owner_;
    std::vector<T> copy_;
    std::span<const T> values_;
    size_t first_bad_ = 0;
    std::string bad_number_;
};

}  // namespace fastcompress::bindings
