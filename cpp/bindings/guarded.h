// Objects that a call from Python may change, each behind the same guard.
//
// A call that changes the object has it alone; calls that only read it may run side by side. Any other call that comes
// meanwhile is refused with one error, a BusyError, whether it is another thread's (cores release the GIL while they work, and
// a free-threaded Python has none) or a callback's that the running call made.
//
// Exceptions, where waiting is right: bpe.PretokenCounts, which is documented to be filled from several threads, waits
// for its turn (bind_trainer.cc); bpe.Tokenizer locks its pool of encoders and is immutable otherwise.
#pragma once

#include <string>
#include <utility>

#include "bind.h"
#include "fastcompress/common/exclusive.h"

namespace fastcompress::bindings {

// What Python calls a guarded type, for the message. Each binding specializes it.
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

    // body(object) alone with it.
    template <class Body>
    auto write(const Body& body) {
        const WriteTurn turn(uses_);
        if (!turn.is_granted()) refuse_second_use(kPythonName<T>);
        return body(object_);
    }
    // body(object), which changes nothing, beside others that do not either.
    template <class Body>
    auto read(const Body& body) const {
        const ReadTurn turn(uses_);
        if (!turn.is_granted()) refuse_second_use(kPythonName<T>);
        return body(object_);
    }
    // The same with the GIL released; body() touches no Python object.
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
