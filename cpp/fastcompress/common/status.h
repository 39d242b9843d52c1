// Status and Result: how the cores report bad input. The only exception that leaves a core is std::bad_alloc; the
// bindings turn a Status into a typed Python error. A message is one line that names the value, what it must be, and
// the remedy if one exists.
//
//   Status check(const Params& params);
//   if (Status status = check(params); !status.ok()) return status;
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace fastcompress {

enum class StatusCode {
    kOk,
    kInvalidArgument,  // a setting is out of range or contradicts another
    kInvalidData,      // the data cannot be used, for example because it is too much
    kUnknownToken,     // a token id that the vocabulary does not have
    kMalformed,        // a serialized object is truncated, corrupted, foreign or of an unknown version
    kFile,             // a file cannot be written or read
};

struct [[nodiscard]] Status {
    StatusCode code = StatusCode::kOk;
    std::string message;

    bool ok() const { return code == StatusCode::kOk; }
};

inline Status invalid_argument(std::string message) {
    return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status invalid_data(std::string message) {
    return {StatusCode::kInvalidData, std::move(message)};
}
inline Status unknown_token(std::string message) {
    return {StatusCode::kUnknownToken, std::move(message)};
}
inline Status file_failed(std::string message) {
    return {StatusCode::kFile, std::move(message)};
}
inline Status malformed(std::string message) {
    return {StatusCode::kMalformed, std::move(message)};
}

// A value, or the Status that says why it is missing.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::move(value)) {}
    Result(Status status) : state_(std::move(status)) { assert(!this->status().ok()); }

    bool ok() const { return std::holds_alternative<T>(state_); }
    const Status& status() const { return std::get<Status>(state_); }
    T& operator*() {
        assert(ok());
        return std::get<T>(state_);
    }
    const T& operator*() const {
        assert(ok());
        return std::get<T>(state_);
    }
    T* operator->() { return &**this; }
    const T* operator->() const { return &**this; }

  private:
    std::variant<T, Status> state_;
};

}  // namespace fastcompress
