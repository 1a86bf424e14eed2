// Messages and the monitored barrier, a part of class Backend.

c10::intrusive_ptr<c10d::Work> send(Tensors& ts, int to, int tag) override {
  one(ts);
  TORCH_CHECK(to != getRank(), "goccl: cannot send to self");
  Moved m(ts[0]);
  auto w = work(OpType::SEND, "send", ts, ts);
  return message(w, Call(GOCCL_SEND, m.type).rooted(other(to)).from(w->reads(ts[0]), m.width), tag);
}

c10::intrusive_ptr<c10d::Work> recv(Tensors& ts, int from, int tag) override {
  TORCH_CHECK(from != getRank(), "goccl: cannot receive from self");
  return receive(OpType::RECV, "recv", ts, other(from), tag);
}

c10::intrusive_ptr<c10d::Work> recvAnysource(Tensors& ts, int tag) override {
  return receive(OpType::RECVANYSOURCE, "recvAnySource", ts, GOCCL_ANY_SOURCE, tag);
}

c10::intrusive_ptr<c10d::Work> receive(OpType type, const char* name, Tensors& ts, int from, int tag) {
  one(ts);
  Moved m(ts[0]);
  auto w = work(type, name, ts, ts);
  return message(w, Call(GOCCL_RECV, m.type).rooted(from).to(w->writes(ts[0]), m.width), tag);
}

int other(int rank) {
  TORCH_CHECK(rank >= 0 && rank < getSize(), "goccl: there is no rank ", rank, " of ", getSize());
  return rank;
}

// message begins a message, which has no place in the order of the group's calls.
c10::intrusive_ptr<c10d::Work> message(WorkPtr w, const Call& call, int tag) {
  goccl_comm c = open(); // which may throw, before the message owns a reference to w
  goccl_message(c, &call, tag, limit(c10d::kUnsetTimeout), Work::arrived, WorkPtr(w).release(), nullptr, nullptr);
  return w;
}

// monitoredBarrier has a Comm of its own, which it makes when it is first called, so that a rank that does not come costs the others the
// barrier, and not the group. A barrier that fails takes that Comm with it, on all ranks: the next one has another. Its words are those
// that programs know from gloo.
void monitoredBarrier(const c10d::BarrierOptions& o, bool all) override {
  auto limit = o.timeout == c10d::kUnsetTimeout ? timeout_.load() : o.timeout;
  std::lock_guard lock(roll_mu_);
  auto call = rolls_++ % 0x1000000; // of which ranks have the same number, whichever of them have failed
  if (getRank() == 0 && limit.count() <= 0) endRoll();
  TORCH_CHECK(getRank() != 0 || limit.count() > 0, "Rank 0 timed out in monitoredBarrier after ", limit.count(), " ms.");
  goccl_error err{};
  if (!roll_) {
    std::vector<int32_t> ranks(getSize());
    std::iota(ranks.begin(), ranks.end(), 0);
    roll_ = subset(open(), ranks, (int)(0x7e000000 + call), limit, err);
  }
  if (!err.code && !goccl_monitored_barrier(roll_, nanoseconds(limit), &err)) return;
  endRoll();
  TORCH_CHECK(getRank() == 0, "Rank ", getRank(), " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. ",
              "Please check rank 0 logs for faulty rank. ", err.text);
  std::vector<int> missing(err.missing, err.missing + std::clamp(err.missing_n, 0, 16));
  if (err.code != GOCCL_ERR_TIMEOUT) missing.assign(err.peer < 0 ? 0 : 1, err.peer);
  if (!all && missing.size() > 1) missing.resize(1);
  TORCH_CHECK(false, missing.size() > 1 || all ? "Ranks " : "Rank ", c10::Join(", ", missing), " failed to pass monitoredBarrier in ", limit.count(), " ms: ", err.text);
}

void endRoll() {
  if (auto c = roll_.exchange(0)) goccl_close(c, nullptr);
}
