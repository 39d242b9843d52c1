// Makes Python lists of token ids. The int object of an id is made once and then shared, which takes a fifth of the
// time of making one per token.
#pragma once

#include <pybind11/pybind11.h>

#include <span>
#include <vector>

#include "fastcompress/bpe/vocabulary/token_buffer.h"

namespace fastcompress::bindings {

// The int objects of the ids of one vocabulary, at most 40 bytes per id. An object is made when its id is first listed.
// Every call needs the GIL.
class IdObjects {
  public:
    explicit IdObjects(size_t vocabulary_size) : size_(vocabulary_size) {}
    IdObjects(const IdObjects&) = delete;
    IdObjects& operator=(const IdObjects&) = delete;
    ~IdObjects() {
        for (PyObject* object : objects_) Py_XDECREF(object);
    }

    // Returns a new list of ids. Requires ids below the size of the vocabulary.
    pybind11::list list(std::span<const bpe::TokenId> ids) {
        if (objects_.empty()) objects_.resize(size_);
        pybind11::list list(ids.size());
        for (size_t i = 0; i < ids.size(); ++i) {
            PyObject*& object = objects_[ids[i]];
            if (object == nullptr) [[unlikely]] {
                object = PyLong_FromUnsignedLong(ids[i]);
                if (object == nullptr) throw pybind11::error_already_set();
            }
            Py_INCREF(object);
            PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), object);
        }
        return list;
    }

  private:
    size_t size_;
    std::vector<PyObject*> objects_;  // by id; null if the id has not been listed yet
};

}  // namespace fastcompress::bindings
