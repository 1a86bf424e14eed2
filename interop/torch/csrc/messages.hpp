// Messages and the monitored barrier, a part of class Backend.

c10::intrusive_ptr<c10d::Work> send(Tensors& ts, int to, int tag) override {
  one(ts), dense(ts[0]);
  TORCH_CHECK(to != getRank(), "goccl: cannot send to self");
  Moved m(ts[0]);
  return message(work(OpType::SEND, "send", ts, ts), Call(GOCCL_SEND, m.type).rooted(other(to)).from(ts[0], m.width), tag);
}

c10::intrusive_ptr<c10d::Work> recv(Tensors& ts, int from, int tag) override {
  one(ts), dense(ts[0]);
  TORCH_CHECK(from != getRank(), "goccl: cannot receive from self");
  Moved m(ts[0]);
  return message(work(OpType::RECV, "recv", ts, ts), Call(GOCCL_RECV, m.type).rooted(other(from)).to(ts[0], m.width), tag);
}

c10::intrusive_ptr<c10d::Work> recvAnysource(Tensors& ts, int tag) override {
  one(ts), dense(ts[0]);
  Moved m(ts[0]);
  return message(work(OpType::RECVANYSOURCE, "recvAnySource", ts, ts), Call(GOCCL_RECV, m.type).rooted(GOCCL_ANY_SOURCE).to(ts[0], m.width), tag);
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

// monitoredBarrier goes by the store, so that a rank that does not come costs the others the barrier, and not the group. Its words are
// those that programs know from gloo.
void monitoredBarrier(const c10d::BarrierOptions& o, bool all) override {
  auto limit = o.timeout == c10d::kUnsetTimeout ? timeout_.load() : o.timeout;
  auto until = std::chrono::steady_clock::now() + limit;
  auto n = barriers_++;
  auto key = [&](const std::string& who) { return c10::str("goccl-monitored/", n, "/", who); };
  auto arrives = [&](const std::string& who) {
    for (auto nap = std::chrono::microseconds(100);; nap = std::min(nap * 3 / 2, std::chrono::microseconds(5000))) {
      if (store_->check({key(who)})) return true;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(nap);
    }
  };
  std::vector<uint8_t> yes{1}, no{0};
  if (getRank() != 0) {
    store_->set(key(std::to_string(getRank())), yes);
    // Rank 0 says how it went, later than the limit where it came later itself.
    bool heard = arrives("all");
    TORCH_CHECK(heard && store_->get(key("all")) == yes, "Rank ", getRank(), " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. ",
                "Please check rank 0 logs for faulty rank.");
    return;
  }
  std::vector<int> missing;
  bool late = limit.count() <= 0;
  for (int r = 1; r < getSize() && !late; r++) {
    if (arrives(std::to_string(r))) continue;
    missing.push_back(r);
    if (!all) break;
  }
  store_->set(key("all"), missing.empty() && !late ? yes : no);
  TORCH_CHECK(!late, "Rank 0 timed out in monitoredBarrier after ", limit.count(), " ms.");
  TORCH_CHECK(missing.empty(), missing.size() > 1 || all ? "Ranks " : "Rank ", c10::Join(", ", missing), " failed to pass monitoredBarrier in ", limit.count(), " ms");
}
