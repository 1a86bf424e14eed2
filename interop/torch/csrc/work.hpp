// Work is one call of c10d: what it keeps alive, and its future. Whichever thread makes the call, or is told of its end, completes both.
#pragma once
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "goccl.h"
#include "threads.hpp"

namespace goccl {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using std::chrono::milliseconds;

// wrong throws what err says. PyTorch's programs look for the word timeout where a limit has passed.
[[noreturn]] inline void wrong(const goccl_error& err) {
  C10_THROW_ERROR(DistBackendError, (err.code == GOCCL_ERR_TIMEOUT ? "goccl: the timeout has passed: " : "goccl: ") + std::string(err.text));
}

inline void must(int32_t code, const goccl_error& err) {
  if (code != GOCCL_OK) wrong(err);
}

// title is "backend:call" for profilers, which keep the pointer.
inline const char* title(const std::string& backend, const char* call) {
  static std::mutex mu;
  static std::set<std::string> titles;
  std::lock_guard lock(mu);
  return titles.insert(backend + ":" + call).first->c_str();
}

class Line;

struct Work : c10d::Work {
  c10::SmallVector<goccl_args, 1> calls; // of one that is posted in a line, which they point into
  int64_t limit = 0;                     // of theirs
  std::shared_ptr<Line> line;
  std::atomic<bool> waits{false}; // in line, not begun

  Tensors outs;               // the result
  Tensors keep;               // memory of the call
  std::function<void()> post; // what is left to do when the call has ended
  std::vector<int64_t> dc, sc;
  int source = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));

  Work(int rank, c10d::OpType type, const char* title, Tensors outs, Tensors in)
      : c10d::Work(rank, type, title, in), outs(std::move(outs)) {}

  std::vector<Tensor> result() override { return outs; }
  int sourceRank() const override { return source; }
  // Whoever asks for the future, or whether the call has ended, is not going to make it.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    begin();
    return future;
  }
  bool isCompleted() override {
    begin();
    return c10d::Work::isCompleted();
  }
  bool wait(milliseconds timeout = kNoTimeout) override; // see Line
  void begin();

  void end(std::exception_ptr why) {
    if (!why && post) {
      try {
        at::NoGradGuard guard;
        post();
      } catch (...) {
        why = std::current_exception();
      }
    }
    post = nullptr;
    keep.clear();
    try {
      if (why) future->setError(why);
      else future->markCompleted(c10::IValue(outs));
    } catch (...) {
      finish(why);
      throw;
    }
    finish(why);
  }

  void end(const goccl_error* err) { end(thrown(err)); }

  // arrived is done of a message.
  static void arrived(void* ctx, int32_t from, const goccl_error* err) noexcept {
    static_cast<Work*>(ctx)->source = from;
    done(ctx, err);
  }

  // done is the callback of a queued call, which owns a reference to its Work. Callbacks of the future may wait for calls of the same
  // group, as those of PyTorch's PowerSGD hook do: on this thread these would never begin.
  // The reference travels with the task, and is not dropped here: the caller may hold a lock that a tensor must not be freed under.
  static void done(void* ctx, const goccl_error* err) noexcept {
    auto end = [w = static_cast<Work*>(ctx), why = thrown(err)] { c10::intrusive_ptr<Work>::reclaim(w)->endQuietly(why); };
    try {
      Threads::run(end);
    } catch (const std::exception&) { // there are no more threads
      end();
    }
  }

  void endQuietly(std::exception_ptr why) noexcept {
    try {
      end(why);
    } catch (const std::exception& e) {
      TORCH_WARN("goccl: a callback of a future has failed: ", e.what());
    } catch (...) {
      TORCH_WARN("goccl: a callback of a future has failed");
    }
  }

  static std::exception_ptr thrown(const goccl_error* err) {
    if (!err) return nullptr;
    try {
      wrong(*err);
    } catch (...) {
      return std::current_exception();
    }
  }
};

using WorkPtr = c10::intrusive_ptr<Work>;

} // namespace goccl
