"""all_gather_object and broadcast_object_list of torch.distributed in one message, where a group is goccl's and the
objects are small.

PyTorch's own send the sizes first, and then the objects. Each of these waits for all ranks. Groups of other backends
keep PyTorch's."""
import functools
import io

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

FIRST = 4096  # bytes of the first message of each rank, in which small objects have room
WORD = 8  # bytes of a number in it


def _ours(group):
    """The group if its only backend is goccl and nothing is to be logged of each call, else None."""
    pg = c10d.GroupMember.WORLD if group is None else group
    backend = c10d._world.pg_map.get(pg)
    return pg if backend and backend[0] == "goccl" and dist.get_debug_level() != dist.DebugLevel.DETAIL else None


def _dump(thing, weights_only):
    f = io.BytesIO()
    if weights_only:
        torch.save(thing, f)
    else:
        c10d._pickler(f).dump(thing)
    return f.getvalue()


def _load(data, weights_only):
    return torch.load(io.BytesIO(data), weights_only=True) if weights_only else c10d._unpickler(io.BytesIO(data)).load()


def _number(n):
    return n.to_bytes(WORD, "little")


def _bytes(data, size):
    return torch.frombuffer(bytearray(data.ljust(size, b"\0")), dtype=torch.uint8)


def _wait(work):
    if work is not None:
        work.wait()


def _gather(pg, data, size):
    """What each rank has as data, filled to size bytes."""
    got, options = torch.empty(pg.size() * size, dtype=torch.uint8, device="cpu"), c10d.AllgatherOptions()
    options.asyncOp = False
    _wait(pg._allgather_base(got, _bytes(data, size), options))
    view = memoryview(got.numpy())
    return [view[at : at + size] for at in range(0, len(view), size)]


def all_gather_object(object_list, obj, group=None, weights_only=False):
    if (pg := _ours(group)) is None:
        return _plain_gather(object_list, obj, group, weights_only)
    data = _dump(obj, weights_only)
    data = _number(len(data)) + data
    firsts = _gather(pg, data[:FIRST], FIRST)
    sizes = [WORD + int.from_bytes(first[:WORD], "little") for first in firsts]
    rests = _gather(pg, data[FIRST:], max(sizes) - FIRST) if max(sizes) > FIRST else [b""] * len(firsts)
    for i, (first, rest, size) in enumerate(zip(firsts, rests, sizes)):
        object_list[i] = _load((bytes(first) + bytes(rest[: max(size - FIRST, 0)]))[WORD:size], weights_only)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, weights_only=False):
    pg = _ours(group)
    if pg is None or device is not None and torch.device(device).type != "cpu":
        return _plain_broadcast(object_list, src, group, device, group_src, weights_only)
    if src is None and group_src is None:
        src = 0
    root = c10d._canonicalize_group_rank(pg, src, group_src, return_global=False)
    options, sends = c10d.BroadcastOptions(), pg.rank() == root
    options.rootRank, options.rootTensor, options.asyncOp = root, 0, False

    def send(data, size):
        message = _bytes(data, size) if sends else torch.empty(size, dtype=torch.uint8, device="cpu")
        _wait(pg.broadcast([message], options))
        return bytes(memoryview(message.numpy()))

    all_, head = b"", WORD * (1 + len(object_list))
    if sends:
        parts = [_dump(thing, weights_only) for thing in object_list]
        all_ = b"".join([_number(sum(map(len, parts)) + head), *(_number(len(p)) for p in parts), *parts])
    got = send(all_[:FIRST], FIRST)
    size = int.from_bytes(got[:WORD], "little")
    if size > FIRST:
        got += send(all_[FIRST:], size - FIRST)
    if sends:
        return
    sizes, at = [int.from_bytes(got[i : i + WORD], "little") for i in range(WORD, head, WORD)], head
    if head + sum(sizes) != size:
        raise ValueError(f"goccl: broadcast_object_list: rank {root} of the group has a list of another length than "
                         f"{len(object_list)}")
    for i, n in enumerate(sizes):
        object_list[i], at = _load(got[at : at + n], weights_only), at + n


def _install(ours):
    plain = getattr(c10d, ours.__name__)
    functools.update_wrapper(ours, plain)
    for module in (c10d, dist):
        setattr(module, ours.__name__, ours)
    return plain


_plain_gather, _plain_broadcast = _install(all_gather_object), _install(broadcast_object_list)
