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
[[noreturn]] inline void wrong(const goccl_error& err, const char* hint = "") {
  C10_THROW_ERROR(DistBackendError, (err.code == GOCCL_ERR_TIMEOUT ? "goccl: the timeout has passed: " : "goccl: ") + std::string(err.text) + hint);
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

// Memory holds elements in their logical order, one behind the other. A Call takes nothing else, and only Stands makes one of a tensor.
struct Memory {
  void* at;
  int64_t n; // elements
};

// Stands decides for each tensor of a call, by ordered, whether its memory is in logical order. Where it is not, as of channels_last, a transposed, sliced
// or expanded tensor, or a conjugate that is not computed yet, other memory stands in for it. What is true of a tensor of this rank need not
// be of the other ranks', so the order in memory is never sent.
class Stands {
 public:
  double times = 1; // what the call reads is multiplied by it, in other memory
  // reads is t as the call reads it.
  Memory reads(const Tensor& t) { return ordered(t) && times == 1 ? of(t) : copy(t); }
  // reads is t as a call reads it that writes to dst. The library refuses memory of both, unless they are one, or the smaller is this rank's
  // part of the larger. Elsewhere other memory stands in for t.
  Memory reads(const Tensor& t, const Memory& dst, int rank, int ranks) {
    auto src = reads(t);
    auto at = [&](const Memory& m, int64_t n) { return static_cast<char*>(m.at) + n * t.element_size(); };
    if (at(src, src.n) <= dst.at || at(dst, dst.n) <= src.at || (src.at == dst.at && src.n == dst.n)) return src;
    const Memory &part = src.n < dst.n ? src : dst, &whole = src.n < dst.n ? dst : src;
    return part.n * ranks == whole.n && part.at == at(whole, rank * part.n) ? src : copy(t);
  }
  // writes is what the call writes, and copies back to t.
  Memory writes(const Tensor& t) {
    if (ordered(t)) return of(t);
    back_.emplace_back(t, stand(t));
    return of(keep_.back());
  }
  // updates is t as the call reads and writes it, which is alone in its memory, or other memory stands in for it.
  Memory updates(const Tensor& t, bool alone = true) {
    if (ordered(t) && alone && times == 1) return of(t);
    auto memory = copy(t);
    back_.emplace_back(t, keep_.back());
    return memory;
  }
  // reads and writes of lists have their tensors one behind the other.
  Memory reads(const Tensors& ts) {
    return list(ts, [this](const Tensor& t, const Tensor& part) { fill(part, t); });
  }
  Memory writes(const Tensors& ts) {
    return list(ts, [this](const Tensor& t, const Tensor& part) { back_.emplace_back(t, part); });
  }

 protected:
  // keep keeps memory of the call alive.
  void keep(const Tensors& ts) { keep_.insert(keep_.end(), ts.begin(), ts.end()); }

  // giveBack copies what the call has written to the tensors it is for. A tensor whose elements share memory takes no copy: then this rank
  // has an error, and the others, which know nothing of it, have their results.
  void giveBack() {
    if (back_.empty()) return;
    c10::InferenceMode guard; // there tensors of both modes can be written, and no gradients are recorded
    for (auto& [t, stand] : back_) t.copy_(stand);
  }
  void drop() { keep_.clear(), back_.clear(); }

 private:
  static bool ordered(const Tensor& t) {
    TORCH_CHECK(t.layout() == at::kStrided && !t.is_nested(), "goccl: only supports dense tensors, unsupported layout ", t.is_nested() ? at::kJagged : t.layout());
    return t.is_contiguous() && !t.is_conj() && !t.is_neg() && !t._is_zerotensor();
  }

  static Memory of(const Tensor& t) { return {t.data_ptr(), t.numel()}; }

  Tensor& stand(const Tensor& t) {
    keep_.push_back(at::empty(t.sizes(), t.options().requires_grad(false).memory_format(at::MemoryFormat::Contiguous)));
    return keep_.back();
  }

  Memory copy(const Tensor& t) {
    fill(stand(t), t);
    return of(keep_.back());
  }

  // fill has part be what the call reads of t.
  void fill(const Tensor& part, const Tensor& t) {
    at::NoGradGuard guard;
    part.copy_(t);
    if (times != 1) part.mul_(times);
  }

  template <typename F>
  Memory list(const Tensors& ts, F each) {
    int64_t n = 0, at = 0;
    for (auto& t : ts) ordered(t), n += t.numel();
    keep_.push_back(at::empty({n}, ts[0].options().requires_grad(false)));
    for (auto& t : ts) each(t, keep_.back().narrow(0, at, t.numel()).view(t.sizes())), at += t.numel();
    return of(keep_.back());
  }

  Tensors keep_;
  std::vector<std::pair<Tensor, Tensor>> back_;
};

class Line;

struct Work : c10d::Work, Stands {
  c10::SmallVector<goccl_args, 1> calls; // of one that is posted in a line, which they point into
  int64_t limit = 0;                     // of theirs
  std::shared_ptr<Line> line;
  std::atomic<bool> waits{false}; // in line, not begun

  Tensors outs; // the result
  std::vector<int64_t> dc, sc;
  int source = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));

  Work(int rank, c10d::OpType type, const char* title, Tensors outs, Tensors in)
      : c10d::Work(rank, type, title, in), outs(std::move(outs)) {
    keep(this->outs), keep(in);
  }

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
    if (!why) {
      try {
        giveBack();
      } catch (...) {
        why = std::current_exception();
      }
    }
    drop();
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
    auto end = [w = static_cast<Work*>(ctx), why = static_cast<Work*>(ctx)->thrown(err)] { c10::intrusive_ptr<Work>::reclaim(w)->endQuietly(why); };
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

  std::exception_ptr thrown(const goccl_error* err) const; // see Line
};

using WorkPtr = c10::intrusive_ptr<Work>;

} // namespace goccl
