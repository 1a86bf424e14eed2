#!/usr/bin/env python3
"""torch_call.py [ROUNDS]: what torch.distributed takes to issue an all-reduce of 8 bytes on one rank, beside the budget of Queue.AllReduce.

One rank launches nothing in place, so a stretch of calls is the cost to the caller alone. Prints one line for each form and length.
"""
import os, sys, time

import torch
import torch.distributed as dist

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29581")
torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
x = torch.zeros(2, dtype=torch.float32, device="cuda:0")

forms = [
    ("all_reduce", lambda: dist.all_reduce(x)),
    ("all_reduce, async_op", lambda: dist.all_reduce(x, async_op=True)),
    ("broadcast", lambda: dist.broadcast(x, 0)),
]
print(f"# torch {torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}, us a call")
for n in (200, 2000, 20000):
    took = {name: [] for name, _ in forms}
    for _ in range(min(rounds, max(3, 40000 // n))):
        for name, call in forms:
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(n):
                call()
            took[name].append((time.perf_counter() - start) / n * 1e6)
            torch.cuda.synchronize()
    for name, us in took.items():
        us.sort()
        print(f"{n:6d} calls in a stretch  {name:24s} least {us[0]:8.3f}  median {us[len(us) // 2]:8.3f}", flush=True)
dist.destroy_process_group()
