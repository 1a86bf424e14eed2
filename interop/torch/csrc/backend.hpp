// Backend is a process group of c10d over one Comm.
#pragma once
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <numeric>

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
  // Backend has comm, whose calls have the timeout opened where they have none of their own.
  Backend(goccl_comm comm, c10::intrusive_ptr<c10d::Store> store, milliseconds opened, milliseconds timeout, std::string group, std::string name)
      : c10d::Backend(goccl_rank(comm), goccl_size(comm)), store_(std::move(store)), group_(std::move(group)), name_(std::move(name)),
        opened_(opened), timeout_(timeout), comm_(comm), line_(std::make_shared<Line>(comm)) {}

  ~Backend() override { close(); }

  // make is the Backend of a new job. The last ranks of it are spares: there it waits, and is null if the job ends without this one.
  static c10::intrusive_ptr<Backend> make(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, int64_t spares, milliseconds timeout,
                                          std::string group, std::string name) {
    Fork::watch();
    Meeting meeting{store};
    goccl_options o{};
    o.size = sizeof o, o.rank = rank, o.ranks = ranks, o.spares = spares;
    auto most = std::max(timeout, kBackendDefaultTimeout); // setTimeout may make timeouts longer later
    o.open_timeout = nanoseconds(timeout), o.timeout = nanoseconds(most);
    o.name = group.c_str(), o.prefix = "goccl", o.store = meeting.callbacks();
    goccl_error err;
    goccl_comm comm;
    auto code = goccl_open(&o, &comm, &err);
    if (code == GOCCL_ERR_UNUSED) return {};
    must(code, err);
    return c10::make_intrusive<Backend>(comm, std::move(store), most, timeout, std::move(group), std::move(name));
  }

  // part makes the Backend of some ranks of this group, which these alone make, without a store: no rank needs to know how many groups others
  // have made. It is null where this group cannot make one: it has failed, as on all ranks, or is closed.
  c10::intrusive_ptr<Backend> part(const std::vector<int32_t>& ranks, int tag, c10::intrusive_ptr<c10d::Store> store, milliseconds timeout,
                                   std::string group, std::string name) {
    TORCH_CHECK(!Fork::happened(), "goccl: this process is a forked child of a rank");
    goccl_comm all = comm_;
    if (!all || timeout > opened_) return {};
    goccl_error err;
    auto comm = subset(all, ranks, tag, timeout, err);
    if (err.code && goccl_failed(all, nullptr)) return {};
    must(err.code, err);
    return c10::make_intrusive<Backend>(comm, std::move(store), opened_, timeout, std::move(group), std::move(name));
  }

  // replace has spares take the places of lost ranks. It waits for living ranks for as long as a call of the group may take.
  void replace() {
    goccl_error err;
    goccl_comm next;
    line_->begin();
    must(goccl_replace(open(), limit(c10d::kUnsetTimeout), &next, &err), err);
    adopt(next);
  }

  // remake makes the Comm of a part again, of the Comm that all has now.
  void remake(Backend& all, const std::vector<int32_t>& ranks, int tag) {
    goccl_error err;
    line_->begin();
    auto comm = subset(all.open(), ranks, tag, timeout_, err);
    must(err.code, err);
    adopt(comm);
  }

  bool closed() const { return !comm_; }

  std::vector<int32_t> fresh() {
    std::vector<int32_t> ranks(getSize());
    auto n = goccl_fresh(open(), ranks.data(), getSize());
    ranks.resize(std::max(n, 0));
    return ranks;
  }
  void restored() {
    goccl_error err;
    must(goccl_restored(open(), &err), err);
  }

  void shutdown() override { close(); }
  void abort() override {
    if (Fork::happened()) return;
    if (auto c = comm_.load()) goccl_abort(c, "aborted by PyTorch", nullptr), line_->begin();
    if (auto c = roll_.load()) goccl_abort(c, "aborted by PyTorch", nullptr);
  }
  // failed is why the group has failed, empty if it has not.
  std::string failed() {
    goccl_error err;
    return goccl_failed(open(), &err) ? err.text : "";
  }
  // name_ is what profilers show. This name is what PyTorch chooses classes by, and casts to them.
  const std::string getBackendName() const override { return "goccl"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return c10::make_intrusive<Settings>(timeout_, "goccl"); }
  void setTimeout(milliseconds t) override {
    if (t > opened_) TORCH_WARN("goccl: calls of this group take at most ", opened_.count(), " ms, and not ", t.count(), ": make it with a longer timeout");
    timeout_ = t;
  }
  uint64_t getSequenceNumberForGroup() override { return calls_; }
  void setSequenceNumberForGroup() override {}

#include "collectives.hpp"
#include "messages.hpp"

 private:
  // nanoseconds are those of t, or of a century, where they would not fit.
  static int64_t nanoseconds(milliseconds t) { return std::min<int64_t>(t.count(), 100LL * 365 * 86'400'000) * 1'000'000; }

  static goccl_comm subset(goccl_comm all, const std::vector<int32_t>& ranks, int tag, milliseconds timeout, goccl_error& err) {
    goccl_comm comm;
    goccl_subset(all, ranks.data(), (int32_t)ranks.size(), tag, nanoseconds(timeout), &comm, &err);
    return comm;
  }

  // adopt takes comm in the place of the Comm that has failed. What ranks count of its calls begins anew, as on a rank that was a spare.
  void adopt(goccl_comm comm) {
    endRoll();
    calls_ = 0, rolls_ = 0, factors_.clear();
    line_ = std::make_shared<Line>(comm);
    if (auto old = comm_.exchange(comm)) goccl_close(old, nullptr);
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
    endRoll();
    if (auto c = comm_.exchange(0)) line_->settle(std::chrono::seconds(5)), goccl_close(c, nullptr);
  }

  WorkPtr work(OpType type, const char* call, Tensors outs, Tensors in) {
    if (type != OpType::SEND && type != OpType::RECV && type != OpType::RECVANYSOURCE) calls_++;
    return c10::make_intrusive<Work>(getRank(), type, title(name_, call), std::move(outs), in);
  }

  // reduced is how w reduces t. A Comm has room for some factors, as programs have them that do not change. By what comes later each rank
  // multiplies what it gives, as NCCL does: all ranks alike, since all have had the same factors.
  Reduced reduced(const WorkPtr& w, const Tensor& t, const c10d::ReduceOp& r) {
    Reduced how(t, r);
    if (how.op != GOCCL_MULSUM) return how;
    std::lock_guard lock(factors_mu_);
    if (factors_.size() < factorsMost) factors_.insert(how.factor);
    if (!factors_.count(how.factor) && t.is_floating_point() && t.element_size() > 1) w->times = how.factor, how.op = GOCCL_SUM;
    return how;
  }

  // limit is what a call has beside the timeout of the Comm: nothing, in most calls.
  int64_t limit(milliseconds t) {
    if (t == c10d::kUnsetTimeout || t.count() <= 0) t = timeout_;
    return t == opened_ ? 0 : nanoseconds(t);
  }

  // go makes calls and ends w, or has them made. What they point to belongs to w, or to the caller if async is false.
  c10::intrusive_ptr<c10d::Work> go(WorkPtr w, const goccl_args* calls, size_t n, bool async, milliseconds timeout) {
    open();
    w->line = line_;
    line_->came();
    if (async) {
      w->calls.assign(calls, calls + n), w->limit = limit(timeout);
      line_->post(w);
      return w;
    }
    goccl_error err;
    w->end(line_->make(calls, n, limit(timeout), &err) ? &err : nullptr);
    return w;
  }
  c10::intrusive_ptr<c10d::Work> go(WorkPtr w, const Call& call, bool async, milliseconds timeout) { return go(std::move(w), &call, 1, async, timeout); }

  // beside is call, which reads in and writes out. The part of an all-to-all that stays on a rank has no place there that follows from its number.
  Call beside(const WorkPtr& w, Call call, const Tensor& out, const Tensor& in, int64_t width = 1) {
    auto dst = w->writes(out);
    return call.to(dst, width).from(w->reads(in, dst, call.kind == GOCCL_ALL_TO_ALL_V ? 0 : getRank(), getSize()), width);
  }

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
  std::atomic<goccl_comm> comm_{0};
  std::shared_ptr<Line> line_;
  std::atomic<uint64_t> calls_{0};
  static constexpr size_t factorsMost = 200;
  std::mutex factors_mu_;
  std::set<double> factors_; // that calls of the Comm have had
  std::mutex roll_mu_;
  std::atomic<goccl_comm> roll_{0}; // of the monitored barrier
  uint32_t rolls_ = 0;              // monitored barriers that there were
};

} // namespace goccl
