// Status and Result: how the cores report bad input. No exceptions cross a core; the bindings turn a Status into a
// typed Python error. A message names the thing and, where there is one, the remedy, in one line.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace fastcompress {

enum class StatusCode {
    kInvalidArgument,  // a setting is out of range or contradicts another
    kInvalidData,      // the data cannot serve: a corpus too small
    kUnknownToken,     // a token id that the vocabulary does not have
    kMalformed,        // a serialized object is truncated, corrupted, foreign or of an unknown version
    kFile,             // a file cannot be written or read
};

struct Status {
    StatusCode code;
    std::string message;
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

// Either a value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::move(value)) {}
    Result(Status status) : state_(std::move(status)) {}

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

  private:
    std::variant<T, Status> state_;
};

}  // namespace fastcompress
