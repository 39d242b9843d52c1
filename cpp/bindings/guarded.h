// Guards objects that calls from Python may change.
//
// A call that changes the object runs alone; calls that only read it may run at the same time. A conflicting call is
// refused with one error, BusyError, whether it comes from another thread (cores release the GIL while they work, and a
// free-threaded Python has none) or from a callback of the running call.
//
// Two classes are not guarded like this: bpe.PretokenCounts, which several threads may fill, waits for its turn
// (bind_trainer.cc), and bpe.Tokenizer locks its pool of encoders and is otherwise immutable.
#pragma once

#include <string>
#include <utility>

#include "bind.h"
#include "fastcompress/common/exclusive.h"

namespace fastcompress::bindings {

// The name of a guarded type in Python, for the message. Each binding specializes it.
template <class T>
inline constexpr const char* kPythonName = nullptr;

[[noreturn]] inline void refuse_second_use(const char* name) {
    raise_named("BusyError", std::string("another thread is using this ") + name +
                                 "; give each thread its own, or use it from one thread at a time");
}

template <class T>
class Guarded {
  public:
    template <class... Args>
    explicit Guarded(std::in_place_t, Args&&... args) : object_(std::forward<Args>(args)...) {}
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    // Calls body(object) while no other call uses the object.
    template <class Body>
    auto write(const Body& body) {
        const WriteTurn turn(uses_);
        if (!turn.is_granted()) refuse_second_use(kPythonName<T>);
        return body(object_);
    }
    // Calls body(object), which must not change the object, while no call changes it.
    template <class Body>
    auto read(const Body& body) const {
        const ReadTurn turn(uses_);
        if (!turn.is_granted()) refuse_second_use(kPythonName<T>);
        return body(object_);
    }
    // The same with the GIL released. The body must not touch any Python object.
    template <class Body>
    auto write_without_gil(const Body& body) {
        return write([&](T& object) { return without_gil([&] { return body(object); }); });
    }
    template <class Body>
    auto read_without_gil(const Body& body) const {
        return read([&](const T& object) { return without_gil([&] { return body(object); }); });
    }

  private:
    T object_;
    mutable UseCount uses_;
};

template <class T, class... Args>
std::unique_ptr<Guarded<T>> make_guarded(Args&&... args) {
    return std::make_unique<Guarded<T>>(std::in_place, std::forward<Args>(args)...);
}

}  // namespace fastcompress::bindings
