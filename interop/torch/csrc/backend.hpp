// Backend is a process group of c10d over one Comm.
#pragma once
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>

#include "line.hpp"
#include "store.hpp"
#include "tensors.hpp"

namespace goccl {

using c10d::OpType;

struct Settings : c10d::Backend::Options {
  Settings(milliseconds t, std::string name) : c10d::Backend::Options(std::move(name), t) {}
};

class Backend : public c10d::Backend {
 public:
  Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size, milliseconds timeout, std::string group, std::string name)
      : c10d::Backend(rank, size), store_(std::move(store)), group_(std::move(group)), name_(std::move(name)),
        opened_(timeout), timeout_(timeout), meeting_{store_} {
    goccl_error err;
    Fork::watch();
    auto o = options(group_.c_str(), "goccl", rank, size);
    goccl_comm comm;
    must(goccl_open(&o, &comm, &err), err);
    comm_ = comm, line_ = std::make_shared<Line>(comm);
  }

  // Backend of some ranks of another group, which these alone make, without a store: no rank needs to know how many groups others have made.
  // Its calls have the timeout of that group's Comm where they have none of their own.
  Backend(Backend& all, goccl_comm comm, c10::intrusive_ptr<c10d::Store> store, int rank, int size, milliseconds timeout, std::string group, std::string name)
      : c10d::Backend(rank, size), store_(std::move(store)), group_(std::move(group)), name_(std::move(name)),
        opened_(all.opened_), timeout_(timeout), meeting_{store_}, comm_(comm), line_(std::make_shared<Line>(comm)) {}

  ~Backend() override { close(); }

  // part makes that Backend. It is null where this group cannot make one: it has failed, as on all ranks, or is closed.
  c10::intrusive_ptr<Backend> part(const std::vector<int32_t>& ranks, int tag, c10::intrusive_ptr<c10d::Store> store, int rank, milliseconds timeout,
                                   std::string group, std::string name) {
    TORCH_CHECK(!Fork::happened(), "goccl: this process is a forked child of a rank");
    goccl_comm all = comm_, comm;
    goccl_error err;
    if (!all || timeout > opened_) return {};
    auto code = goccl_subset(all, ranks.data(), (int32_t)ranks.size(), tag, std::chrono::nanoseconds(timeout).count(), &comm, &err);
    if (code && goccl_failed(all, nullptr)) return {};
    must(code, err);
    return c10::make_intrusive<Backend>(*this, comm, std::move(store), rank, (int)ranks.size(), timeout, std::move(group), std::move(name));
  }

  void shutdown() override { close(); }
  void abort() override {
    if (Fork::happened()) return;
    if (auto c = comm_.load()) goccl_abort(c, "aborted by PyTorch", nullptr), line_->begin();
  }
  // name_ is what profilers show. This name is what PyTorch chooses classes by, and casts to them.
  const std::string getBackendName() const override { return "goccl"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return c10::make_intrusive<Settings>(timeout_, "goccl"); }
  void setTimeout(milliseconds t) override { timeout_ = t; }
  uint64_t getSequenceNumberForGroup() override { return calls_; }
  void setSequenceNumberForGroup() override {}

#include "collectives.hpp"
#include "messages.hpp"

 private:
  goccl_options options(const char* name, const char* prefix, int rank, int size) {
    goccl_options o{};
    o.size = sizeof o, o.rank = rank, o.ranks = size;
    o.open_timeout = o.timeout = std::chrono::nanoseconds(opened_).count();
    o.name = name, o.prefix = prefix, o.store = meeting_.callbacks();
    return o;
  }

  // open is the Comm, where it can be used.
  goccl_comm open() {
    TORCH_CHECK(!Fork::happened(), "goccl: this process is a forked child of a rank; only the parent may use the group");
    goccl_comm c = comm_;
    TORCH_CHECK(c, "goccl: the group is closed");
    return c;
  }

  void close() {
    if (Fork::happened()) return;
    if (auto c = comm_.exchange(0)) line_->settle(std::chrono::seconds(5)), goccl_close(c, nullptr);
  }

  WorkPtr work(OpType type, const char* call, Tensors outs, Tensors in, Tensors keep = {}) {
    if (type != OpType::SEND && type != OpType::RECV && type != OpType::RECVANYSOURCE) calls_++;
    auto w = c10::make_intrusive<Work>(getRank(), type, title(name_, call), std::move(outs), in);
    w->keep = std::move(keep);
    w->keep.insert(w->keep.end(), w->outs.begin(), w->outs.end());
    w->keep.insert(w->keep.end(), in.begin(), in.end());
    return w;
  }

  // limit is what a call has beside the timeout of the Comm: nothing, in most calls.
  int64_t limit(milliseconds t) {
    if (t == c10d::kUnsetTimeout || t.count() <= 0) t = timeout_;
    return t == opened_ ? 0 : std::chrono::nanoseconds(t).count();
  }

  // go makes calls and ends w, or has them made. What they point to belongs to w, or to the caller if async is false.
  c10::intrusive_ptr<c10d::Work> go(WorkPtr w, const goccl_args* calls, size_t n, bool async, milliseconds timeout) {
    open();
    if (async) {
      w->calls.assign(calls, calls + n), w->limit = limit(timeout), w->line = line_;
      line_->post(w);
      return w;
    }
    goccl_error err;
    w->end(line_->make(calls, n, limit(timeout), &err) ? &err : nullptr);
    return w;
  }
  c10::intrusive_ptr<c10d::Work> go(WorkPtr w, const Call& call, bool async, milliseconds timeout) { return go(std::move(w), &call, 1, async, timeout); }

  // now makes calls whose results the next ones need.
  void now(const goccl_args* calls, size_t n, milliseconds timeout) {
    goccl_error err;
    open();
    must(line_->make(calls, n, limit(timeout), &err), err);
  }

  c10::intrusive_ptr<c10d::Store> store_;
  const std::string group_, name_;
  const milliseconds opened_;
  std::atomic<milliseconds> timeout_;
  Meeting meeting_;
  std::atomic<goccl_comm> comm_{0};
  std::shared_ptr<Line> line_;
  std::atomic<uint64_t> calls_{0}, barriers_{0};
};

} // namespace goccl
