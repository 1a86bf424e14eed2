// Threads run what may itself wait for calls: there is always a thread that waits for the next task, however many are inside one.
#pragma once
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace goccl {

// Fork says whether this process was forked from one that has used goccl. Neither the threads of Go nor those below are here, and a lock may
// be held for ever: nothing is to be asked of the library.
class Fork {
 public:
  static void watch() {
    static const int watched = pthread_atfork(nullptr, nullptr, [] { flag() = true; });
    (void)watched;
  }
  static bool happened() { return flag(); }

 private:
  static std::atomic<bool>& flag() {
    static std::atomic<bool> is{false};
    return is;
  }
};

class Threads {
 public:
  // run has task run on another thread, which catches what it throws. It throws itself if there can be no thread.
  static void run(std::function<void()> task) {
    static auto* all = new Threads; // never destroyed: its threads may be inside as the process ends
    all->add(std::move(task));
  }

 private:
  void add(std::function<void()> task) {
    std::lock_guard lock(mu_);
    if (!started_) start();
    started_ = true;
    tasks_.push_back(std::move(task));
    news_.notify_one();
  }

  void start() { std::thread([this] { work(); }).detach(); }

  void work() {
    std::unique_lock lock(mu_);
    for (;;) {
      idle_++;
      news_.wait(lock, [this] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      if (--idle_ == 0) {
        try {
          start();
        } catch (const std::exception&) { // no more threads: the next task waits for this one
        }
      }
      lock.unlock();
      task();
      task = nullptr; // what it keeps alive is freed without the lock
      lock.lock();
    }
  }

  std::mutex mu_;
  std::condition_variable news_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;
  bool started_ = false;
};

} // namespace goccl
