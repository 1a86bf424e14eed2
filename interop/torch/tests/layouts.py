"""layouts.py RANKS: every call of c10d with tensors of every layout on goccl, against what the logical order of the elements says. All must be
right, whatever the layouts of the other ranks. Only an output whose elements share memory is refused, on its own rank alone: the others
have their results, and the group is good."""
import collections
import faulthandler
import os
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SHAPE = (2, 4, 2, 2)
SHARED = "more than one element of the written-to tensor refers to a single memory location"


def inferred(x):
    with torch.inference_mode():
        return x.transpose(0, 3).clone(memory_format=torch.contiguous_format).transpose(0, 3)


LAYOUTS = {
    "contiguous": lambda x: x.clone(),
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(0, 3).contiguous().transpose(0, 3),
    "strided": lambda x: torch.stack([x, torch.full_like(x, -7)], -1)[..., 0],
    "sliced": lambda x: torch.cat([torch.full_like(x, -7), x, torch.full_like(x, -7)], 1)[:, x.shape[1]:2 * x.shape[1]],
    "expanded": lambda x: x[:, :1].expand_as(x),
    "zero-dimensional": lambda x: x.sum(),
    "without elements": lambda x: x[..., :0].transpose(1, 2),
    "leaf": lambda x: x.to(memory_format=torch.channels_last).requires_grad_(),
    "inference": inferred,
    "negative": lambda x: torch.complex(x, 3 * x).conj().imag,
}


def value(k):
    return (torch.arange(32.0, dtype=torch.float64) * 2 + 100 * k + 1).reshape(SHAPE)


class Cases:
    """One call each: what it gives, and what it should give. i is the layout of what is read, o of what is written; where one tensor is both,
    i is rank 0's and o the others'."""

    def __init__(self, rank, n, group, i, o, later):
        self.rank, self.n, self.group, self.later = rank, n, group, later
        self.i, self.o, self.mine = LAYOUTS[i], LAYOUTS[o], LAYOUTS[i if rank == 0 else o]

    def read(self, k):
        return self.i(value(k))

    def truth(self, k, layout=None):
        return (layout or self.i)(value(k)).detach().clone(memory_format=torch.contiguous_format)

    def empty(self):
        return self.o(torch.full(SHAPE, -1.0, dtype=torch.float64))

    def join(self, parts):
        return torch.stack(parts) if parts[0].dim() == 0 else torch.cat(parts)

    def wide(self, layout, ks):
        """The tensor of this layout that has the values of ks as its parts."""
        return self.join([layout(value(k)) for k in ks]) if layout is LAYOUTS["zero-dimensional"] else layout(torch.cat([value(k) for k in ks]))

    def done(self, work):
        if self.later:
            work.wait()

    def total(self):
        return sum(self.truth(k, self.i if k == 0 else self.o) for k in range(self.n))

    def broadcast(self):
        x = self.mine(value(3)) if self.rank == 0 else self.empty()
        self.done(dist.broadcast(x, 0, group=self.group, async_op=self.later))
        return x, self.truth(3)

    def all_reduce(self):
        x = self.mine(value(self.rank))
        self.done(dist.all_reduce(x, group=self.group, async_op=self.later))
        return x, self.total()

    def all_reduce_coalesced(self):
        x = self.mine(value(self.rank))
        self.done(dist.all_reduce_coalesced([x], group=self.group, async_op=self.later))
        return x, self.total()

    def manager(self):
        x, y = self.mine(value(self.rank)), torch.ones(3, dtype=torch.float64)
        with dist._coalescing_manager(group=self.group, async_ops=self.later) as works:
            dist.all_reduce(x, group=self.group)
            dist.all_reduce(y, group=self.group)
        self.done(works)
        return x, self.total()

    def reduce(self):
        x = self.mine(value(self.rank))
        self.done(dist.reduce(x, 0, group=self.group, async_op=self.later))
        return (x, self.total()) if self.rank == 0 else (x, x)

    def gather(self):
        parts = [self.empty() for _ in range(self.n)] if self.rank == 0 else None
        self.done(dist.gather(self.read(self.rank), parts, 0, group=self.group, async_op=self.later))
        return (torch.stack(parts), torch.stack([self.truth(k) for k in range(self.n)])) if self.rank == 0 else (None, None)

    def scatter(self):
        x = self.empty()
        self.done(dist.scatter(x, [self.read(k) for k in range(self.n)] if self.rank == 0 else None, 0, group=self.group, async_op=self.later))
        return x, self.truth(self.rank)

    def scatter_in_place(self):
        parts = [self.read(k) for k in range(self.n)] if self.rank == 0 else None
        x = parts[0] if parts else self.empty()
        self.done(dist.scatter(x, parts, 0, group=self.group, async_op=self.later))
        return x, self.truth(self.rank)

    def all_gather(self):
        parts = [self.empty() for _ in range(self.n)]
        self.done(dist.all_gather(parts, self.read(self.rank), group=self.group, async_op=self.later))
        return torch.stack(parts), torch.stack([self.truth(k) for k in range(self.n)])

    def all_gather_coalesced(self):
        parts = [[self.empty()] for _ in range(self.n)]
        self.done(dist.all_gather_coalesced(parts, [self.read(self.rank)], group=self.group, async_op=self.later))
        return torch.stack([p[0] for p in parts]), torch.stack([self.truth(k) for k in range(self.n)])

    def all_gather_into_tensor(self):
        x = self.wide(self.o, range(self.n)).detach()
        x.zero_() if self.o is not LAYOUTS["expanded"] else None
        self.done(dist.all_gather_into_tensor(x, self.read(self.rank), group=self.group, async_op=self.later))
        return x, self.join([self.truth(k) for k in range(self.n)])

    def all_gather_in_place(self):
        x = self.wide(self.o, [self.rank] * self.n).detach()
        self.done(dist.all_gather_into_tensor(x, x.tensor_split(self.n)[self.rank], group=self.group, async_op=self.later))
        return x, self.join([self.truth(k, self.o) for k in range(self.n)])

    def gather_manager(self):
        x = self.wide(self.o, range(self.n)).detach()
        with dist._coalescing_manager(group=self.group, async_ops=self.later) as works:
            dist.all_gather_into_tensor(x, self.read(self.rank), group=self.group)
        self.done(works)
        return x, self.join([self.truth(k) for k in range(self.n)])

    def sums(self):
        return sum(self.truth(10 * k + self.rank) for k in range(self.n))

    def reduce_scatter(self):
        x = self.empty()
        self.done(dist.reduce_scatter(x, [self.read(10 * self.rank + k) for k in range(self.n)], group=self.group, async_op=self.later))
        return x, self.sums()

    def reduce_scatter_tensor(self):
        x = self.empty()
        self.done(dist.reduce_scatter_tensor(x, self.wide(self.i, [10 * self.rank + k for k in range(self.n)]), group=self.group, async_op=self.later))
        return x, self.sums()

    def reduce_scatter_manager(self):
        x = self.empty()
        with dist._coalescing_manager(group=self.group, async_ops=self.later) as works:
            dist.reduce_scatter_tensor(x, self.wide(self.i, [10 * self.rank + k for k in range(self.n)]), group=self.group)
        self.done(works)
        return x, self.sums()

    def all_to_all_single(self):
        x = self.wide(self.o, range(self.n)).detach()
        self.done(dist.all_to_all_single(x, self.wide(self.i, [10 * self.rank + k for k in range(self.n)]), group=self.group, async_op=self.later))
        return x, self.join([self.truth(10 * k + self.rank) for k in range(self.n)])

    def all_to_all(self):
        parts = [self.empty() for _ in range(self.n)]
        self.done(dist.all_to_all(parts, [self.read(10 * self.rank + k) for k in range(self.n)], group=self.group, async_op=self.later))
        return torch.stack(parts), torch.stack([self.truth(10 * k + self.rank) for k in range(self.n)])

    def send(self):
        x = self.empty()
        if self.rank > 1:
            return None, None
        if self.later:
            (dist.isend(self.read(5), 1, group=self.group) if self.rank == 0 else dist.irecv(x, 0, group=self.group)).wait()
        elif self.rank == 0:
            dist.send(self.read(5), 1, group=self.group)
        else:
            dist.recv(x, 0 if self.o is self.i else None, group=self.group)
        return (x, self.truth(5)) if self.rank == 1 else (None, None)

    def batch_isend_irecv(self):
        x, to, by = self.empty(), (self.rank + 1) % self.n, (self.rank - 1) % self.n
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, self.read(self.rank), to, group=self.group), dist.P2POp(dist.irecv, x, by, group=self.group)]):
            work.wait()
        return x, self.truth(by)


CALLS = [name for name in vars(Cases) if name not in ("read", "truth", "empty", "join", "wide", "done", "total", "sums") and name[0] != "_"]
BOTH = ("broadcast", "all_reduce", "all_reduce_coalesced", "manager", "reduce", "scatter_in_place")  # rank 0's tensor has the layout of what is read


def pairs():
    """A layout beside itself, and beside the plainest one that has its shape. One that is negated when it is read is read alone: to a
    tensor like that PyTorch writes back the result of no backend."""
    for layout in LAYOUTS:
        if layout != "negative":
            yield layout, layout
        if layout not in ("contiguous", "zero-dimensional", "without elements"):
            yield layout, "contiguous"
            if layout != "negative":
                yield "contiguous", layout


def how_it_goes(cases, call):
    try:
        got, want = getattr(cases, call)()
    except RuntimeError as e:
        return "shared" if SHARED in str(e) else f"refused: {str(e).splitlines()[0][:200]}"
    except ValueError as e:
        return f"refused: {str(e).splitlines()[0][:200]}"
    return "right" if got is None or torch.equal(got, want) or got.numel() == want.numel() == 0 else "WRONG"


def wanted(call, i, o, rank):
    """What goccl must do."""
    if call in ("broadcast", "send") and rank == 0 or call == "send" and rank > 1 or call in ("reduce", "gather") and rank > 0:
        return "right"  # writes to none
    return "shared" if "expanded" == (i if call in BOTH and rank == 0 else o) else "right"


def rank_of(rank, n, store):
    faulthandler.dump_traceback_later(250, exit=True)
    torch.set_num_threads(1)
    import torch_goccl  # noqa: F401

    dist.init_process_group("goccl", init_method="file://" + store, rank=rank, world_size=n, timeout=timedelta(seconds=60))
    counts, bad = collections.Counter(), []
    for i, o in pairs():
        for call in CALLS:
            if n < 2 and call in ("send", "batch_isend_irecv") or i == "negative" and call in BOTH:
                continue
            for later in (False, True):
                how = how_it_goes(Cases(rank, n, dist.group.WORLD, i, o, later), call)
                if how != (want := wanted(call, i, o, rank)):
                    bad.append(f"rank {rank} of {n}: {call}{' later' if later else ''}, {i} to {o}: {how}, and not {want}")
                counts[how.split(":")[0]] += 1
    for line in bad[:20]:
        print("layouts.py:", line, flush=True)
    if rank == 0:
        print(f"layouts.py: {n} ranks, {sum(counts.values())} cases:", ", ".join(f"{k} {v}" for v, k in counts.most_common()), flush=True)
    dist.barrier()  # the others may be in the last messages yet
    os._exit(1 if bad else 0)


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        mp.start_processes(rank_of, (ranks, tmp + "/store"), nprocs=ranks, start_method="fork")
