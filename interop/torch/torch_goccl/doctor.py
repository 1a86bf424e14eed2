"""Says what of torch_goccl works here, and what may be in its way: python -m torch_goccl.doctor"""
import os
import shutil
import sys
import sysconfig
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(r, store, hosts, said):
    os.environ["GOCCL_LOG"] = "quiet"
    if hosts > 1:
        os.environ["GOCCL_HOSTID"] = f"host{r}"
    torch.set_num_threads(1)
    import torch_goccl  # noqa: F401

    dist.init_process_group("goccl", init_method="file://" + store, rank=r, world_size=2)
    x = torch.full((1 << 20,), r + 1.0)
    dist.all_reduce(x)
    if not torch.equal(x, torch.full_like(x, 3)):
        sys.exit("a sum of two ranks is wrong")
    times = []
    for _ in range(20):
        began = time.perf_counter()
        dist.all_reduce(x)
        times.append(time.perf_counter() - began)
    if r == 0:
        with open(said, "w") as f:
            f.write(f"{min(times) * 1e3:.2f} ms for an all-reduce of 4 MiB")
    dist.destroy_process_group()


def two_ranks(hosts):
    """How two ranks of this host get on: as of one host, by shared memory, or as of two, by TCP."""
    with tempfile.TemporaryDirectory() as tmp:
        said = os.path.join(tmp, "said")
        try:
            mp.spawn(rank, (os.path.join(tmp, "store"), hosts, said), nprocs=2)
        except Exception as e:
            return False, str(e).strip().splitlines()[-1]
        with open(said) as f:
            return True, f.read()


def main():
    good = True

    def say(what, fine, text):
        nonlocal good
        good = good and fine is not False
        print(f"{'ok  ' if fine else 'BAD ' if fine is False else 'note'} {what}: {text}", flush=True)

    say("torch", None, f"{torch.__version__}, Python {sysconfig.get_python_version()}, {os.cpu_count()} processors")
    try:
        import torch_goccl
        from torch_goccl import build
    except (ImportError, OSError) as e:
        say("torch_goccl", False, e)
        return 1
    say("torch_goccl", True, f"{torch_goccl.__version__}, library {torch_goccl.version()}, extension {torch_goccl._C.__file__}")
    say("built for torch", None, ", ".join(build.shipped()) + "; others are built on this machine, once")
    free = shutil.disk_usage("/dev/shm").free >> 20 if os.path.exists("/dev/shm") else 0
    say("/dev/shm", free >= 64, f"{free} MiB free; ranks of one host share memory there (docker: --shm-size=1g)")
    for hosts, way in ((1, "two ranks, shared memory"), (2, "two ranks, TCP")):
        say(way, *two_ranks(hosts))
    secret = os.environ.get("GOCCL_SECRET_FILE") or os.environ.get("GOCCL_SECRET")
    say("secret", True if secret else None, "is set" if secret else "none is set: between hosts, anybody who reaches them can join (GOCCL_SECRET_FILE)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
