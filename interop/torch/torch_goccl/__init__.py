"""goccl as a backend of torch.distributed for CPU tensors.

    import torch_goccl
    torch.distributed.init_process_group("goccl")
"""
import atexit
import ctypes
import importlib.util
import os
import sys
import time
import uuid

import torch
import torch.distributed as dist

import libgoccl

__version__ = libgoccl.__version__
__all__ = ["fresh", "init_process_group", "replace", "restored", "version"]


def _load():
    """The extension for this torch: the one that came with the package, or one that is built once on this machine."""
    ctypes.CDLL(libgoccl.library, mode=ctypes.RTLD_GLOBAL)  # which it finds by its symbols
    from . import build

    path = os.path.join(build.HERE, build.name())
    if not os.path.exists(path) and not os.path.exists(path := build.kept()):
        print(f"torch_goccl: building its extension for torch {torch.__version__}, once, as {path}", file=sys.stderr, flush=True)
        build.build(path)
    name = "torch_goccl." + os.path.basename(path).split(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_C = _load()


def version():
    """The version of libgoccl, such as "0.4.0"."""
    return _C.version()


def _fresh(store, rank, size, seconds):
    """store without what ranks have left in it before: torchrun restarts a job on the same store, and a program that
    makes its default group again mostly gets the store that it had.

    Each rank says who it is, by a number of its own. Rank 0 answers with a number of its own and the list of theirs, again when one of them
    changes, until all have seen themselves in it. So no rank takes what is old for new, and no count of restarts has to be equal."""
    mine, until, nap = uuid.uuid4().hex, time.monotonic() + seconds, 0.001
    store.set(f"goccl/hello/{rank}", mine)

    def late(who):
        nonlocal nap
        if time.monotonic() > until:
            raise dist.DistBackendError(f"goccl: the timeout has passed: rank {rank} of {size}: after {seconds:g}s {who()}")
        time.sleep(nap)
        nap = min(nap * 1.5, 0.02)

    if rank == 0:
        hellos, told, first = [f"goccl/hello/{r}" for r in range(size)], None, 1
        while first < size:
            if store.check(hellos) and (now := b",".join(store.multi_get(hellos)).decode()) != told:
                store.set("goccl/attempt", mine + " " + now)
                told = now
            while first < size and store.check([f"goccl/{mine}/{first}"]):
                first += 1
            if first < size:
                late(lambda: _missing(store, size, mine))
    else:
        while True:
            if store.check(["goccl/attempt"]):
                attempt, _, ranks = store.get("goccl/attempt").decode().partition(" ")
                if mine in ranks:
                    break
            late(lambda: "rank 0 has not answered")
        store.set(f"goccl/{attempt}/{rank}", "")
        mine = attempt
    return dist.PrefixStore("goccl/" + mine, store)


def _missing(store, size, attempt, most=16):
    """Says which ranks have not said who they are, or else have not seen themselves in rank 0's list."""
    for key in "hello", attempt:
        if ranks := [r for r in range(1, size) if not store.check([f"goccl/{key}/{r}"])]:
            more = f" and {len(ranks) - most} more" if len(ranks) > most else ""
            listed = ", ".join(map(str, ranks[:most]))
            return f"rank {listed} has not joined" if len(ranks) == 1 else f"ranks {listed}{more} have not joined"
    return "all have joined"


_given = None  # the group that init_process_group has made, and torch.distributed's is about to ask for


def init_process_group(spares, rank=-1, world_size=-1, store=None, timeout=dist.distributed_c10d.default_pg_timeout):
    """Makes the default group of world_size processes, without the last spares of them.

    A spare waits in here until a rank is lost and the others call replace: then it has that rank's number, and goes on
    as the others have begun. It returns whether this process is a rank of the group: False on a spare that was not
    needed, when the others have ended."""
    global _given
    if dist.is_initialized():  # before another job is made
        raise ValueError("goccl: there is a default group already")
    if store is None:
        store, rank, world_size = next(iter(dist.rendezvous("env://", rank, world_size, timeout=timeout)))
    ms = int(timeout.total_seconds() * 1000)
    given = _C.create(_fresh(store, rank, world_size, ms / 1000), rank, world_size, ms, "0", "goccl", True, spares)
    if given is None:
        return False
    _given = given
    try:
        dist.init_process_group("goccl", store=dist.PrefixStore("goccl/group", store), rank=given.rank(),
                                world_size=given.size(), timeout=timeout)
    finally:
        _given = None  # where PyTorch has refused, no other group is it
    return True


def replace():
    """Brings the default group back after a loss, with spares in the places of the lost ranks, and the groups that were
    made of it with its timeout or a shorter one.

    All living ranks call it: where one does not, it is an error on the others after the group's timeout. A rank that was
    a spare makes the groups that the others still have, in their order. It returns the ranks that need the state of the
    others, as fresh does."""
    return _C.replace()


def fresh():
    """The ranks that were spares, and have not called restored yet."""
    return _C.fresh()


def restored():
    """Says that this rank has the state of the others."""
    _C.restored()


def _create(options, _=None, name="goccl"):
    global _given
    given, _given = _given, None
    if given is not None:
        return given
    limit = options.timeout
    ms = int(limit.total_seconds() * 1000) if hasattr(limit, "total_seconds") else int(limit * 1000)
    ranks = list(options.global_ranks_in_group)
    if ranks:
        made = _C.part(options.store, ranks, ms, str(options.group_id), name)
        if made is not None:
            return made
    store = _fresh(options.store, options.group_rank, options.group_size, ms / 1000)
    return _C.create(store, options.group_rank, options.group_size, ms, str(options.group_id), name, not ranks, 0)


def _leave():
    if not hasattr(sys, "last_type"):  # else an exception ends this rank, which is lost to the others
        _C.leave()


atexit.register(_leave)
dist.Backend.register_backend("goccl", _create, extended_api=True, devices=["cpu"])
from . import objects  # noqa: E402,F401: takes the place of two functions of torch.distributed
