"""goccl as a backend of torch.distributed for CPU tensors.

    import torch_goccl
    torch.distributed.init_process_group("goccl")
"""
import torch  # noqa: F401: its libraries must be there first
import torch.distributed as dist

from . import _C

__all__ = ["version"]


def version():
    """The version of libgoccl.so, such as "0.3.0"."""
    return _C.version()


def _create(options, _=None, name="goccl"):
    limit = options.timeout
    ms = int(limit.total_seconds() * 1000) if hasattr(limit, "total_seconds") else int(limit * 1000)
    return _C.create(options.store, options.group_rank, options.group_size, ms, str(options.group_id), name)


dist.Backend.register_backend("goccl", _create, extended_api=True, devices=["cpu"])
