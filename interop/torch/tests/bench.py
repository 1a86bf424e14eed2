"""Measures all_reduce through torch, barriers, objects, new groups and training steps, on gloo and goccl in turns, on one host and on two.

    bench.py                      everything, 30 rounds
    bench.py -rounds 3 -quick     the same with few calls in a round, to see that it works
    bench.py -only "8 B"          cells whose name has this in it
    bench.py -ranks 64 -hosts 1 -only waits    what programs wait for between steps, with 64 ranks
    bench.py -promise             ends with 1 if goccl's share of gloo's time is more than it may be

The two backends are groups of the same processes. In each round each of them makes the same calls, and which begins changes from round to
round. A cell shows the median over rounds of the time of a call on rank 0, the median of goccl's time as a share of gloo's in the same
round, and in brackets intervals that hold these medians with 95 %. Two hosts are ranks that take each other for other machines: they talk over TCP.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time

import torch
import torch._dynamo  # noqa: F401: which each rank would import at its first step
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

MiB = 1 << 20
CELLS = [("8 B", 8, torch.float32, 400), ("4 KiB", 4096, torch.float32, 400), ("1 MiB", MiB, torch.float32, 30),
         ("64 MiB", 64 * MiB, torch.float32, 2), ("64 MiB bf16", 64 * MiB, torch.bfloat16, 2)]  # with so many calls in a round
STEPS = [("ddp", 64, 2), ("ddp", 512, 4), ("fsdp2", 64, 2), ("fsdp2", 512, 4)]
# The largest share of gloo's time that goccl may take, by number of hosts, cell and way.
BARS = {(1, "8 B", "blocking"): 0.10, (1, "8 B", "async"): 0.15, (2, "8 B", "blocking"): 0.25, (2, "8 B", "async"): 0.40}
WAITS = ("barrier", "monitored_barrier", "all_gather_object 1 KiB", "broadcast_object_list 1 KiB", "new_group and destroy")
BARS.update(((hosts, name, "waits"), 0.33 if "KiB" in name and hosts == 1 else 1.0) for name in WAITS for hosts in (1, 2))
for size in ("64 MiB", "64 MiB bf16"):
    for way in ("blocking", "async"):
        BARS[1, size, way], BARS[2, size, way] = 0.5, 1.0


def interval(values):
    """The median, and the values between which the median of what they are drawn from lies with 95 %: by their order alone."""
    v, n = sorted(values), len(values)
    below, k = 0.0, 0
    while k < n // 2 and below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    low = max(k - 1, 0)
    return statistics.median(v), v[low], v[n - 1 - low]


def seconds(t):
    return f"{t * 1e6:.1f} us" if t < 1e-3 else f"{t * 1e3:.2f} ms"


def shown(values, form):
    return "{} [{}, {}]".format(*map(form, interval(values)))


class Table:
    def __init__(self, rank, hosts, args):
        self.rank, self.hosts, self.args, self.missed = rank, hosts, args, []

    def wants(self, cell):
        return all(text in cell for text in self.args.only or [])

    def measure(self, cell, way, runs, bar=None):
        """runs has a function by backend that makes a round's calls, and returns the seconds of one."""
        names, times = list(runs), {name: [] for name in runs}
        for name in names:
            runs[name]()  # connects, and touches memory
        for r in range(self.args.rounds):
            for name in names if r % 2 == 0 else names[::-1]:
                times[name].append(runs[name]())
        if self.rank:
            return
        shares = [b / a for a, b in zip(times["gloo"], times["goccl"])]
        verdict = ""
        if bar is not None:
            met = interval(shares)[0] <= bar
            verdict = f"at most {bar:.2f}: {'met' if met else 'MISSED'}"
            if not met:
                self.missed.append(f"{self.hosts} host(s), {cell}, {way}")
        print(f"| {self.hosts} | {cell} | {way} | {shown(times['gloo'], seconds)} | {shown(times['goccl'], seconds)} "
              f"| {shown(shares, '{:.3f}'.format)} | {verdict} |", flush=True)
        if self.args.json:
            with open(self.args.json, "a") as f:
                f.write(json.dumps({"hosts": self.hosts, "cell": cell, "way": way, "seconds": times}) + "\n")


def calls(group, x, many, is_async):
    def run():
        dist.barrier(group=group)
        began = time.perf_counter()
        for _ in range(many):
            work = dist.all_reduce(x, group=group, async_op=is_async)
            if is_async:
                work.wait()
        return (time.perf_counter() - began) / many

    return run


def waits(group, name, backend, many):
    """What programs wait for between steps."""
    thing, objects = bytes(1024), [None] * dist.get_world_size(group)

    def remade():
        made = dist.new_group(backend=backend)
        dist.barrier(group=made)
        dist.destroy_process_group(made)

    call = {
        "barrier": lambda: dist.barrier(group=group),
        "monitored_barrier": lambda: dist.monitored_barrier(group=group),
        "all_gather_object 1 KiB": lambda: dist.all_gather_object(objects, thing, group=group),
        "broadcast_object_list 1 KiB": lambda: dist.broadcast_object_list([thing], 0, group=group),
        "new_group and destroy": remade,
    }[name]

    def run():
        dist.barrier(group=group)
        began = time.perf_counter()
        for _ in range(many):
            call()
        return (time.perf_counter() - began) / many

    return run


def step(group, kind, width, depth, many):
    torch.manual_seed(1)
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    else:
        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in model[:-1]:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(8, width)

    def run():
        dist.barrier(group=group)
        began = time.perf_counter()
        for _ in range(many):
            loss = (model(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return (time.perf_counter() - began) / many

    return run


def rank_of(rank, hosts, args, store):
    if hosts > 1:
        os.environ["GOCCL_HOSTID"] = f"host{rank % hosts}"
    torch.set_num_threads(1)
    import torch_goccl  # noqa: F401: registers goccl

    dist.init_process_group("goccl", init_method="file://" + store, rank=rank, world_size=args.ranks)
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "goccl")}
    table = Table(rank, hosts, args)
    for name, size, dtype, many in CELLS:
        for way in ("blocking", "async"):
            if table.wants(f"{name} {way}"):
                x = torch.zeros(size // dtype.itemsize, dtype=dtype)
                many = max(many // 20, 1) if args.quick else many
                table.measure(name, way, {b: calls(g, x, many, way == "async") for b, g in groups.items()}, BARS.get((hosts, name, way)))
    for name in WAITS:
        if table.wants(f"{name} waits"):
            many = 2 if args.quick or name.startswith("new") else max(100 // args.ranks, 4)
            bar = BARS[hosts, name, "waits"] if args.ranks == 2 else 1.0
            table.measure(name, "waits", {b: waits(g, name, b, many) for b, g in groups.items()}, bar)
    for kind, width, depth in STEPS:
        if table.wants(f"{kind} {width}x{depth} step"):
            many = 1 if args.quick else 5
            table.measure(f"{kind} {width}x{depth}", "step", {b: step(g, kind, width, depth, many) for b, g in groups.items()})
    dist.barrier()
    if args.promise and table.missed:
        print("bench.py: more than its share of gloo's time:", "; ".join(table.missed), flush=True)
        os._exit(3)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-ranks", type=int, default=2)
    parser.add_argument("-rounds", type=int, default=30)
    parser.add_argument("-hosts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("-only", action="append", help="a part of a cell's name; several are all to be in it")
    parser.add_argument("-quick", action="store_true")
    parser.add_argument("-promise", action="store_true")
    parser.add_argument("-json", help="a file that gets the times of each cell")
    options = parser.parse_args()
    print(f"{options.ranks} ranks, {options.rounds} rounds, PyTorch {torch.__version__}, {os.cpu_count()} processors\n")
    print("| hosts | what | how | gloo | goccl | goccl/gloo | |\n|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for n in options.hosts:
        with tempfile.TemporaryDirectory() as tmp:
            ranks = mp.start_processes(rank_of, (n, options, tmp + "/store"), nprocs=options.ranks, join=False, start_method="fork")
            for p in ranks.processes:
                p.join()
            codes = [p.exitcode for p in ranks.processes]
        if any(codes[1:]) or codes[0] not in (0, 3):
            sys.exit(f"bench.py: the ranks ended with {codes}")
        failed = failed or codes[0] == 3
    sys.exit(1 if failed else 0)
