// Undoes a change that was not completed. Functions use it to give the strong guarantee when an allocation fails.
//
//   const size_t size = ids.size();
//   Rollback rollback([&] { ids.resize(size); });
//   ...                   // may throw
//   rollback.release();   // done: the change stays
#pragma once

#include <utility>

namespace fastcompress {

// Calls undo() at the end of its scope, unless release() was called. undo() must not throw.
template <class Undo>
class Rollback {
  public:
    explicit Rollback(Undo undo) : undo_(std::move(undo)) {}
    ~Rollback() {
        if (is_armed_) undo_();
    }
    Rollback(const Rollback&) = delete;
    Rollback& operator=(const Rollback&) = delete;

    void release() { is_armed_ = false; }

  private:
    Undo undo_;
    bool is_armed_ = true;
};

}  // namespace fastcompress
