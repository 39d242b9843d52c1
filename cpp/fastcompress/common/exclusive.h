// Guards for objects that calls may change: one call that changes the object at a time, or any number that read it.
//
// A call that conflicts with one under way is refused and never waits. So two threads that share an object by mistake
// get an error, and a callback that uses the object it was called from cannot deadlock.
//
//   UseCount uses;
//   if (const WriteTurn turn(uses); turn.is_granted()) object.change();
//
// TurnTaker is for the few objects that are meant to be shared: there a call waits for its turn, except a call from
// within another call on the same thread, which would wait for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace fastcompress {

// The number of calls that are using an object.
class UseCount {
  public:
    UseCount() = default;
    UseCount(const UseCount&) = delete;
    UseCount& operator=(const UseCount&) = delete;

    bool try_write() noexcept {
        int32_t none = 0;
        return uses_.compare_exchange_strong(none, kWriting, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void end_write() noexcept { uses_.store(0, std::memory_order_release); }
    bool try_read() noexcept {
        int32_t uses = uses_.load(std::memory_order_relaxed);
        while (uses != kWriting) {
            if (uses_.compare_exchange_weak(uses, uses + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    void end_read() noexcept { uses_.fetch_sub(1, std::memory_order_release); }

  private:
    static constexpr int32_t kWriting = -1;
    std::atomic<int32_t> uses_{0};  // the number of readers, or kWriting
};

// The right to change an object, until the end of the scope.
class [[nodiscard]] WriteTurn {
  public:
    explicit WriteTurn(UseCount& uses) noexcept : uses_(uses), is_granted_(uses.try_write()) {}
    ~WriteTurn() {
        if (is_granted_) uses_.end_write();
    }
    WriteTurn(const WriteTurn&) = delete;
    WriteTurn& operator=(const WriteTurn&) = delete;
    bool is_granted() const { return is_granted_; }

  private:
    UseCount& uses_;
    const bool is_granted_;
};

// The right to read an object, until the end of the scope.
class [[nodiscard]] ReadTurn {
  public:
    explicit ReadTurn(UseCount& uses) noexcept : uses_(uses), is_granted_(uses.try_read()) {}
    ~ReadTurn() {
        if (is_granted_) uses_.end_read();
    }
    ReadTurn(const ReadTurn&) = delete;
    ReadTurn& operator=(const ReadTurn&) = delete;
    bool is_granted() const { return is_granted_; }

  private:
    UseCount& uses_;
    const bool is_granted_;
};

// A lock that waits for other threads and knows when its own thread holds it.
class TurnTaker {
  public:
    bool is_mine() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
    // Requires !is_mine().
    void lock() {
        mutex_.lock();
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    bool try_lock() {
        if (!mutex_.try_lock()) return false;
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        return true;
    }
    void unlock() {
        owner_.store(std::thread::id(), std::memory_order_relaxed);
        mutex_.unlock();
    }

  private:
    std::mutex mutex_;
    std::atomic<std::thread::id> owner_{};
};

}  // namespace fastcompress
