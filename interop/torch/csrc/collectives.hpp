// The collectives, a part of class Backend: what c10d asks for, as one call or a group of calls.

c10::intrusive_ptr<c10d::Work> broadcast(Tensors& ts, const c10d::BroadcastOptions& o) override {
  one(ts);
  TORCH_CHECK(o.rootRank >= 0 && o.rootRank < getSize(), "goccl: broadcast: invalid root rank: ", o.rootRank);
  Moved m(ts[0]);
  auto w = work(OpType::BROADCAST, "broadcast", ts, ts);
  auto dst = getRank() == o.rootRank ? w->reads(ts[0]) : w->writes(ts[0]);
  return go(w, Call(GOCCL_BROADCAST, m.type).rooted(o.rootRank).to(dst, m.width), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> allreduce(Tensors& ts, const c10d::AllreduceOptions& o) override {
  one(ts);
  if (ts[0].layout() == at::kSparse) return allreduce_sparse(ts, o);
  auto w = work(OpType::ALLREDUCE, "all_reduce", ts, ts);
  Call call(GOCCL_ALL_REDUCE, reduced(w, ts[0], o.reduceOp));
  auto sum = w->updates(ts[0]);
  return go(w, call.to(sum).from(sum), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> allreduce_coalesced(Tensors& ts, const c10d::AllreduceCoalescedOptions& o) override {
  TORCH_CHECK(!ts.empty(), "goccl: requires non-empty tensor list");
  for (auto& t : ts) TORCH_CHECK(t.scalar_type() == ts[0].scalar_type(), "tensors must all have the same type");
  auto w = work(OpType::ALLREDUCE_COALESCED, "all_reduce", ts, ts);
  std::vector<goccl_args> calls;
  Taken taken; // a tensor that is there twice is summed once, whatever the order of the calls
  for (auto& t : ts) {
    Call call(GOCCL_ALL_REDUCE, reduced(w, t, o.reduceOp));
    auto sum = w->updates(t, taken.add(t));
    calls.push_back(call.to(sum).from(sum));
  }
  return go(w, calls.data(), calls.size(), o.asyncOp, o.timeout);
}

// allreduce_sparse gathers indices and values of all ranks, and adds those with the same indices. What it refuses it refuses on all ranks: they
// first tell each other what they have.
c10::intrusive_ptr<c10d::Work> allreduce_sparse(Tensors& ts, const c10d::AllreduceOptions& o) override {
  one(ts);
  at::NoGradGuard guard;
  auto mine = ts[0].coalesce();
  int n = getSize();
  auto indices = mine.indices().contiguous(), values = mine.values().contiguous();
  // Each rank has its own number of elements, and all must have the same shape, of at most 64 dimensions.
  std::vector<int64_t> my{mine.sparse_dim(), mine.dense_dim()};
  my.insert(my.end(), mine.sizes().begin(), mine.sizes().end());
  my.resize(2 + 64);
  my.insert(my.end(), {(int64_t)o.reduceOp.op_, (int64_t)values.scalar_type(), mine._nnz()});
  auto w = work(OpType::_ALLREDUCE_SPARSE, "sparse_all_reduce", {ts[0]}, {});
  auto meta = at::tensor(my, at::kLong), metas = at::empty({n, (int64_t)my.size()}, at::kLong);
  Call sizes = Call(GOCCL_ALL_GATHER, GOCCL_INT64).to(w->writes(metas)).from(w->reads(meta));
  now(&sizes, 1, o.timeout);
  int64_t row = 1, sparse = mine.sparse_dim();
  for (auto d : values.sizes().slice(1)) row *= d;
  std::vector<int64_t> indexCounts, valueCounts;
  int64_t all = 0;
  for (int r = 0; r < n; r++) {
    auto* p = metas.data_ptr<int64_t>() + r * my.size();
    const int64_t *nnz = p + my.size() - 1, *type = nnz - 1, *op = nnz - 2;
    TORCH_CHECK(*op == c10d::ReduceOp::SUM, "goccl: unsupported reduction operation on rank ", r, ": sparse tensors have the sum alone");
    TORCH_CHECK(std::equal(my.begin(), my.end() - 3, p), "Sparse dimensions do not match");
    TORCH_CHECK(*type == (int64_t)values.scalar_type(), "goccl: sparse tensors of different types on ranks ", getRank(), " and ", r);
    indexCounts.push_back(*nnz * sparse), valueCounts.push_back(*nnz * row), all += *nnz;
  }
  // Of the indices, each rank's lie together: a matrix of which each column is an element.
  auto columns = indices.t().contiguous();
  auto allIndices = at::empty({all, sparse}, columns.options());
  auto valueSize = values.sizes().vec();
  valueSize[0] = all;
  auto allValues = at::empty(valueSize, values.options());
  Moved m(values);
  for (auto& c : valueCounts) c *= m.width;
  goccl_args gather[] = {
      Call(GOCCL_ALL_GATHER_V, GOCCL_INT64).to(w->writes(allIndices)).from(w->reads(columns)).counts(indexCounts, {}),
      Call(GOCCL_ALL_GATHER_V, m.type).to(w->writes(allValues), m.width).from(w->reads(values), m.width).counts(valueCounts, {}),
  };
  now(gather, 2, o.timeout);
  auto sum = at::sparse_coo_tensor(allIndices.t(), allValues, mine.sizes()).coalesce();
  ts[0].copy_(sum);
  w->end((const goccl_error*)nullptr);
  return w;
}

c10::intrusive_ptr<c10d::Work> reduce(Tensors& ts, const c10d::ReduceOptions& o) override {
  one(ts);
  auto w = work(OpType::REDUCE, "reduce", ts, ts);
  Call call(GOCCL_REDUCE, reduced(w, ts[0], o.reduceOp));
  auto sum = getRank() == o.rootRank ? w->updates(ts[0]) : w->reads(ts[0]);
  return go(w, call.rooted(o.rootRank).to(sum).from(sum), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> allgather(std::vector<Tensors>& outs, Tensors& ins, const c10d::AllgatherOptions& o) override {
  one(ins);
  auto& in = ins[0];
  TORCH_CHECK(outs.size() == 1 && (int)outs[0].size() == getSize(), "goccl: requires a single-element output list of ", getSize(), " tensors");
  sameType(outs[0], in), fits(outs[0][getRank()], in);
  Moved m(in);
  auto w = work(OpType::ALLGATHER, "all_gather", outs[0], {in});
  if (!sameSize(outs[0]))
    for (auto& t : outs[0]) w->dc.push_back(t.numel() * m.width);
  auto kind = w->dc.empty() ? GOCCL_ALL_GATHER : GOCCL_ALL_GATHER_V;
  return go(w, Call(kind, m.type).to(w->writes(outs[0]), m.width).from(w->reads(in), m.width).counts(w->dc, {}), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> _allgather_base(Tensor& out, Tensor& in, const c10d::AllgatherOptions& o) override {
  sameType({out}, in);
  TORCH_CHECK(out.numel() == in.numel() * getSize(), "output tensor size must be equal to world_size times input tensor size");
  Moved m(in);
  auto w = work(OpType::_ALLGATHER_BASE, "_all_gather_base", {out}, {in});
  return go(w, beside(w, Call(GOCCL_ALL_GATHER, m.type), out, in, m.width), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(Tensors& outs, Tensors& ins, const c10d::AllgatherOptions& o) override {
  TORCH_CHECK(outs.size() == ins.size() && !ins.empty(), "goccl: requires input/output tensor lists to have the same length");
  auto w = work(OpType::ALLGATHER_COALESCED, "all_gather", outs, ins);
  std::vector<goccl_args> calls;
  for (size_t i = 0; i < ins.size(); i++) {
    sameType({outs[i]}, ins[i]), fits(outs[i], ins[i], getSize());
    Moved m(ins[i]);
    calls.push_back(beside(w, Call(GOCCL_ALL_GATHER, m.type), outs[i], ins[i], m.width));
  }
  return go(w, calls.data(), calls.size(), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> allgather_coalesced(std::vector<Tensors>& outs, Tensors& ins, const c10d::AllgatherOptions& o) override {
  TORCH_CHECK((int)outs.size() == getSize(), "output lists should be equal to world size");
  TORCH_CHECK(!ins.empty(), "goccl: requires non-empty tensor list");
  Tensors all;
  std::vector<goccl_args> calls;
  for (auto& l : outs) {
    TORCH_CHECK(l.size() == ins.size(), "invalid output size: ", l.size(), " tensors for ", ins.size());
    all.insert(all.end(), l.begin(), l.end());
  }
  auto w = work(OpType::ALLGATHER_COALESCED, "all_gather", all, ins);
  for (size_t i = 0; i < ins.size(); i++) {
    Tensors list;
    for (auto& l : outs) list.push_back(l[i]);
    sameType(list, ins[i]);
    for (auto& t : list) TORCH_CHECK(t.sizes() == ins[i].sizes(), "invalid tensor size at index ", i);
    Moved m(ins[i]);
    calls.push_back(Call(GOCCL_ALL_GATHER, m.type).to(w->writes(list), m.width).from(w->reads(ins[i]), m.width));
  }
  return go(w, calls.data(), calls.size(), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> gather(std::vector<Tensors>& outs, Tensors& ins, const c10d::GatherOptions& o) override {
  one(ins);
  Moved m(ins[0]);
  bool root = getRank() == o.rootRank;
  if (root) {
    TORCH_CHECK(outs.size() == 1 && (int)outs[0].size() == getSize(), "requires a single-element output list containing a list with ", getSize(), " tensors");
    parts(outs[0], ins[0]);
  } else TORCH_CHECK(outs.empty(), "requires empty output on non-root");
  auto w = work(OpType::GATHER, "gather", root ? outs[0] : Tensors{}, ins);
  Call call = Call(GOCCL_GATHER, m.type).rooted(o.rootRank).from(w->reads(ins[0]), m.width);
  return go(w, root ? call.to(w->writes(outs[0]), m.width) : call, o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> gather_into_tensor(Tensor& out, Tensor& in, const c10d::GatherOptions& o) override {
  Moved m(in);
  bool root = getRank() == o.rootRank;
  if (root) sameType({out}, in), fits(out, in, getSize());
  auto w = work(OpType::GATHER, "gather", root ? Tensors{out} : Tensors{}, {in});
  Call call = Call(GOCCL_GATHER, m.type).rooted(o.rootRank);
  return go(w, root ? beside(w, call, out, in, m.width) : call.from(w->reads(in), m.width), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> scatter(Tensors& outs, std::vector<Tensors>& ins, const c10d::ScatterOptions& o) override {
  one(outs);
  Moved m(outs[0]);
  bool root = getRank() == o.rootRank;
  if (root) {
    TORCH_CHECK(ins.size() == 1 && (int)ins[0].size() == getSize(), "requires a single-element input list containing a list with ", getSize(), " tensors");
    parts(ins[0], outs[0]);
  } else TORCH_CHECK(ins.empty(), "requires empty input on non-root");
  auto w = work(OpType::SCATTER, "scatter", outs, root ? ins[0] : Tensors{});
  Call call = Call(GOCCL_SCATTER, m.type).rooted(o.rootRank).to(w->writes(outs[0]), m.width);
  return go(w, root ? call.from(w->reads(ins[0]), m.width) : call, o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> reduce_scatter(Tensors& outs, std::vector<Tensors>& ins, const c10d::ReduceScatterOptions& o) override {
  one(outs);
  TORCH_CHECK(ins.size() == 1 && (int)ins[0].size() == getSize(), "invalid input list: requires ", getSize(), " tensors");
  sameType(ins[0], outs[0]), fits(ins[0][getRank()], outs[0]);
  auto w = work(OpType::REDUCE_SCATTER, "reduce_scatter", outs, ins[0]);
  if (!sameSize(ins[0]))
    for (auto& t : ins[0]) w->sc.push_back(t.numel());
  auto kind = w->sc.empty() ? GOCCL_REDUCE_SCATTER : GOCCL_REDUCE_SCATTER_V;
  return go(w, Call(kind, reduced(w, outs[0], o.reduceOp)).to(w->writes(outs[0])).from(w->reads(ins[0])).counts({}, w->sc), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(Tensor& out, Tensor& in, const c10d::ReduceScatterOptions& o) override {
  sameType({in}, out);
  TORCH_CHECK(in.numel() == out.numel() * getSize(), "input tensor must be the same size as output size times world size");
  auto w = work(OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {out}, {in});
  return go(w, beside(w, Call(GOCCL_REDUCE_SCATTER, reduced(w, out, o.reduceOp)), out, in), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(Tensors& outs, Tensors& ins, const c10d::ReduceScatterOptions& o) override {
  TORCH_CHECK(outs.size() == ins.size() && !ins.empty(), "goccl: requires input/output tensor lists to have the same length");
  auto w = work(OpType::REDUCE_SCATTER, "reduce_scatter", outs, ins);
  std::vector<goccl_args> calls;
  for (size_t i = 0; i < ins.size(); i++) {
    sameType({ins[i]}, outs[i]), fits(ins[i], outs[i], getSize());
    calls.push_back(beside(w, Call(GOCCL_REDUCE_SCATTER, reduced(w, outs[i], o.reduceOp)), outs[i], ins[i]));
  }
  return go(w, calls.data(), calls.size(), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> alltoall_base(Tensor& out, Tensor& in, std::vector<int64_t>& os, std::vector<int64_t>& is, const c10d::AllToAllOptions& o) override {
  sameType({out}, in);
  Moved m(in);
  auto w = work(OpType::ALLTOALL_BASE, "all_to_all", {out}, {in});
  w->dc = splits(out, os, getSize(), m.width), w->sc = splits(in, is, getSize(), m.width);
  // A rank whose parts happen to be equal makes the call that the others make.
  return go(w, beside(w, Call(GOCCL_ALL_TO_ALL_V, m.type), out, in, m.width).counts(w->dc, w->sc), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> alltoall(Tensors& outs, Tensors& ins, const c10d::AllToAllOptions& o) override {
  TORCH_CHECK((int)outs.size() == getSize() && (int)ins.size() == getSize(), "tensor lists must have one tensor per rank");
  sameType(outs, ins[0]), sameType(ins, ins[0]);
  Moved m(ins[0]);
  auto w = work(OpType::ALLTOALL, "all_to_all", outs, ins);
  for (auto& t : outs) w->dc.push_back(t.numel() * m.width);
  for (auto& t : ins) w->sc.push_back(t.numel() * m.width);
  return go(w, Call(GOCCL_ALL_TO_ALL_V, m.type).to(w->writes(outs), m.width).from(w->reads(ins), m.width).counts(w->dc, w->sc), o.asyncOp, o.timeout);
}

c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& o) override {
  return go(work(OpType::BARRIER, "barrier", {}, {}), Call(GOCCL_BARRIER, GOCCL_NONE), o.asyncOp, o.timeout);
}
