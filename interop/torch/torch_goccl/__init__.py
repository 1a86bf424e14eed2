"""goccl as a backend of torch.distributed for CPU tensors.

    import torch_goccl
    torch.distributed.init_process_group("goccl")
"""
import collections
import hashlib

import torch  # noqa: F401: its libraries must be there first
import torch.distributed as dist

from . import _C

__all__ = ["version"]


def version():
    """The version of libgoccl.so, such as "0.3.0"."""
    return _C.version()


_made = collections.Counter()  # the groups of each list of ranks that this process has made


def _create(options, _=None, name="goccl"):
    limit = options.timeout
    ms = int(limit.total_seconds() * 1000) if hasattr(limit, "total_seconds") else int(limit * 1000)
    ranks = list(options.global_ranks_in_group)
    if ranks:
        # The ranks of the list count alike the groups of that list. PyTorch counts all groups that a process has made, and names by
        # that, so its store may give ranks of one group different prefixes.
        _made[tuple(ranks)] += 1
        of = hashlib.sha1(repr((ranks, _made[tuple(ranks)])).encode(), usedforsecurity=False).digest()
        made = _C.part(options.store, ranks, int.from_bytes(of[:4], "big") >> 1, options.group_rank, ms, str(options.group_id), name)
        if made is not None:
            return made
    return _C.create(options.store, options.group_rank, options.group_size, ms, str(options.group_id), name, not ranks)


dist.Backend.register_backend("goccl", _create, extended_api=True, devices=["cpu"])
