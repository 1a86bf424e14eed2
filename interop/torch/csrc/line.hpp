// Line has the calls of one group, in the order in which the program makes them.
//
// A queued call changes threads three times: to the library's, to the one that completes its future, and to the one that waits. So a small
// asynchronous call is not queued at once. It waits in the line, and if the program waits for it there, as most programs do next, the waiting
// thread makes the call, as a blocking one. What nobody waits for is queued by Watch after a moment, at most two of its ticks.
#pragma once
#include <algorithm>
#include <memory>

#include "work.hpp"

namespace goccl {

// Watch has a thread that looks after lines in which calls may wait. It sleeps while there are none.
class Watch {
 public:
  // add has line looked after until its tick returns false. It returns false if there can be no thread.
  static bool add(std::shared_ptr<Line> line) noexcept {
    static auto* all = new Watch; // never destroyed: its thread may be inside as the process ends
    try {
      std::lock_guard lock(all->mu_);
      if (!all->started_) std::thread([] { all->work(); }).detach();
      all->started_ = true;
      all->added_.push_back(std::move(line));
      all->news_.notify_one();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  static constexpr auto tick = std::chrono::microseconds(100);

  void work();

  std::mutex mu_;
  std::condition_variable news_;
  std::vector<std::shared_ptr<Line>> added_;
  bool started_ = false;
};

class Line : public std::enable_shared_from_this<Line> {
 public:
  explicit Line(goccl_comm comm) : comm_(comm) {}

  // came notes which threads make calls.
  void came() {
    std::thread::id first{}, me = std::this_thread::get_id();
    if (!first_.compare_exchange_strong(first, me) && first != me) several_ = true;
  }
  bool several() const { return several_; }

  // make makes calls on this thread, after all that have been posted.
  int32_t make(const goccl_args* calls, size_t n, int64_t limit, goccl_error* err) {
    {
      std::unique_lock lock(mu_);
      turn_.wait(lock, [this] { return !busy_; });
      queue();
      busy_ = true;
    }
    auto code = goccl_call(comm_, calls, (int32_t)n, limit, nullptr, nullptr, err);
    std::lock_guard lock(mu_);
    leave();
    return code;
  }

  // post has the calls of w made.
  void post(WorkPtr w) {
    bool small = isSmall(*w);
    std::lock_guard lock(mu_);
    w->waits = true;
    waiting_.push_back(std::move(w));
    if (small && !watched_) watched_ = Watch::add(shared_from_this());
    fresh_ = true;
    if (!small || !watched_) hurry();
  }

  // begin has all calls that wait begun.
  void begin() {
    std::lock_guard lock(mu_);
    hurry();
  }

  // settle begins all that was posted, behind the calls that waiting threads make of it: for these it waits as goccl_close does for queued ones.
  void settle(milliseconds most) {
    std::unique_lock lock(mu_);
    closing_ = true;
    turn_.wait_for(lock, most, [this] { return !taken_; });
    hurry();
  }

  // take makes the calls of w, and those before, on this thread, as far as they have not begun, no other thread is making calls
  // and the group is not being closed.
  void take(const Work& w) {
    for (;;) {
      WorkPtr next;
      {
        std::lock_guard lock(mu_);
        if (!w.waits) return;
        if (busy_ || closing_) return hurry();
        next = pop();
        busy_ = taken_ = true;
      }
      goccl_error err;
      auto code = goccl_call(comm_, next->calls.data(), (int32_t)next->calls.size(), next->limit, nullptr, nullptr, &err);
      {
        std::lock_guard lock(mu_);
        leave();
      }
      next->endQuietly(next->thrown(code ? &err : nullptr));
    }
  }

  // tick queues what has waited since the tick before. It returns false once nothing has been posted for a while.
  bool tick() {
    std::lock_guard lock(mu_);
    if (old_ > 0) hurry();
    old_ = waiting_.size();
    quiet_ = fresh_ || old_ > 0 ? 0 : quiet_ + 1;
    fresh_ = false;
    return watched_ = quiet_ < quietMost;
  }

 private:
  static constexpr uint64_t smallMost = 1024; // elements of a small call
  static constexpr int quietMost = 5;         // ticks

  static bool isSmall(const Work& w) {
    uint64_t most = 0;
    for (auto& c : w.calls) most += std::max(c.dst_n, c.src_n);
    return most <= smallMost;
  }

  // For what follows mu_ is held. It is never held in a call that blocks, nor where a tensor is freed, which may need Python's lock.

  WorkPtr pop() {
    WorkPtr w = std::move(waiting_.front());
    waiting_.pop_front();
    w->waits = false;
    if (old_ > 0) old_--;
    return w;
  }

  // hurry queues what waits, or has whoever is making calls do so afterwards: the Comm has a lock that is held meanwhile.
  void hurry() { busy_ ? void(hurried_ = true) : queue(); }

  void queue() {
    hurried_ = false;
    while (!waiting_.empty()) {
      auto w = pop();
      auto& calls = w->calls;
      auto limit = w->limit;
      goccl_call(comm_, calls.data(), (int32_t)calls.size(), limit, Work::done, w.release(), nullptr);
    }
  }

  void leave() {
    busy_ = taken_ = false;
    if (hurried_) queue();
    turn_.notify_all();
  }

  const goccl_comm comm_;
  std::atomic<std::thread::id> first_{}; // that has made calls
  std::atomic<bool> several_{false};     // and others have
  std::mutex mu_;
  std::condition_variable turn_; // nobody is making calls
  std::deque<WorkPtr> waiting_;
  size_t old_ = 0;       // how many of them the last tick has seen
  bool busy_ = false;    // a thread is making calls
  bool taken_ = false;   // which were posted
  bool closing_ = false; // no more are taken
  bool hurried_ = false; // and queues what waits when it has made them
  bool watched_ = false; // Watch looks after this line
  bool fresh_ = false;   // something was posted since the last tick
  int quiet_ = 0;        // ticks since anything was
};

inline void Watch::work() {
  std::vector<std::shared_ptr<Line>> lines;
  for (;;) {
    {
      std::unique_lock lock(mu_);
      if (lines.empty()) news_.wait(lock, [this] { return !added_.empty(); });
      lines.insert(lines.end(), added_.begin(), added_.end());
      added_.clear();
    }
    std::this_thread::sleep_for(tick);
    lines.erase(std::remove_if(lines.begin(), lines.end(), [](auto& line) { return !line->tick(); }), lines.end());
  }
}

inline void Work::begin() {
  if (line && waits && !Fork::happened()) line->begin();
}

inline std::exception_ptr Work::thrown(const goccl_error* err) const {
  if (!err) return nullptr;
  try {
    bool crossed = err->code == GOCCL_ERR_MISMATCH && line && line->several();
    wrong(*err, crossed ? " (two threads use one group, so ranks may make calls in different orders: give async_save, or that thread, a group of its own)" : "");
  } catch (...) {
    return std::current_exception();
  }
}

inline bool Work::wait(milliseconds timeout) {
  // Whoever completes it is in the parent.
  TORCH_CHECK(!Fork::happened() || c10d::Work::isCompleted(), "goccl: this process is a forked child of a rank; only the parent may wait for its calls");
  if (timeout != kNoTimeout) begin(); // a call that is made here would not end then
  else if (line && waits) line->take(*this);
  return c10d::Work::wait(timeout);
}

} // namespace goccl
