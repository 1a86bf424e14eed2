// Messages and the monitored barrier, a part of class Backend.

c10::intrusive_ptr<c10d::Work> send(Tensors& ts, int to, int tag) override {
  one(ts), dense(ts[0]);
  TORCH_CHECK(to != getRank(), "goccl: cannot send to self");
  Moved m(ts[0]);
  return message(work(OpType::SEND, "send", ts, ts), Call(GOCCL_SEND, m.type).rooted(1).from(ts[0], m.width), getRank(), to, tag);
}

c10::intrusive_ptr<c10d::Work> recv(Tensors& ts, int from, int tag) override {
  one(ts), dense(ts[0]);
  TORCH_CHECK(from != getRank(), "goccl: cannot receive from self");
  Moved m(ts[0]);
  auto w = work(OpType::RECV, "recv", ts, ts);
  w->source = from;
  return message(w, Call(GOCCL_RECV, m.type).rooted(0).to(ts[0], m.width), from, getRank(), tag);
}

// message is always queued: a link may not be open yet, and the other side may send first, and receive then.
c10::intrusive_ptr<c10d::Work> message(WorkPtr w, const Call& call, int from, int to, int tag) {
  TORCH_CHECK(from >= 0 && from < getSize() && to >= 0 && to < getSize(), "goccl: there is no rank ", from == getRank() ? to : from, " of ", getSize());
  auto l = link(from, to, tag); // which may throw, before the call owns a reference to w
  goccl_call(l, &call, 1, limit(c10d::kUnsetTimeout), Work::done, WorkPtr(w).release(), nullptr);
  return w;
}

// link is the Comm of the messages of one direction and tag, in which the sender is rank 0.
goccl_comm link(int from, int to, int tag) {
  std::lock_guard lock(linkMu_);
  TORCH_CHECK(comm_.load(), "goccl: the group is closed");
  auto& l = links_[{from, to, tag}];
  if (l == 0) {
    auto name = c10::str(group_, " ", from, "-", to, " tag ", tag), prefix = c10::str("goccl-link/", from, "-", to, "-", tag);
    auto o = options(name.c_str(), prefix.c_str(), from == getRank() ? 0 : 1, 2);
    goccl_error err;
    must(goccl_open_later(&o, &l, &err), err);
  }
  return l;
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
