"""own.py RANKS: what PyTorch's tests do not ask of a backend of that name, goccl's and gloo's results side by side, bit by bit."""
import faulthandler
import gc
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

TYPES = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def same(ours, theirs, what):
    if not torch.equal(ours, theirs):
        raise AssertionError(f"{what}: {ours} is not {theirs}")


def values(draw, n, dtype):
    """n small integers, of which sums and products are exact in each type."""
    return torch.tensor([draw.randint(0, 2) for _ in range(n)], dtype=dtype)


def random_calls(rank, n, ours, theirs, rounds):
    """The same calls on both groups, some of them under way at once, have the same results. All ranks draw the same calls."""
    calls, mine = random.Random(5), random.Random(rank)
    works = []
    for i in range(rounds):
        dtype, size, kind = calls.choice(TYPES), calls.choice([0, 1, 3, 100, 5000]), calls.randrange(8)
        op = calls.choice([dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT])
        root, later = calls.randrange(n), calls.randrange(2) == 0
        x = values(mine, size * n, dtype)
        results = []
        for group in (ours, theirs):
            y, w = x.clone(), None
            if kind == 0:
                w = dist.all_reduce(y, op, group=group, async_op=later)
            elif kind == 1:
                w = dist.broadcast(y, root, group=group, async_op=later)
            elif kind == 2:
                y = torch.zeros(size * n * n, dtype=dtype)
                w = dist.all_gather_into_tensor(y, x, group=group, async_op=later)
            elif kind == 3:
                y = torch.zeros(size, dtype=dtype)
                w = dist.reduce_scatter_tensor(y, x, op, group=group, async_op=later)
            elif kind == 4:
                y = torch.zeros(size * n, dtype=dtype)
                w = dist.all_to_all_single(y, x, group=group, async_op=later)
            elif kind == 5:
                y = torch.zeros(size, dtype=dtype)
                w = dist.scatter(y, list(x.chunk(n)) if rank == root and size else [x[:0]] * n if rank == root else None, root, group=group, async_op=later)
            elif kind == 6:
                parts = [torch.zeros(size * n, dtype=dtype) for _ in range(n)]
                w = dist.all_gather(parts, x, group=group, async_op=later)
                y = parts
            else:
                w = dist.reduce(y, root, op, group=group, async_op=later)
                if rank != root:
                    y = torch.zeros(0)
            results.append(y)
            if w is not None:
                works.append(w)
        works.append((i, kind, results))
        if len(works) > 12 or i == rounds - 1:
            for w in works:
                if not isinstance(w, tuple):
                    w.wait()
            for w in works:
                if isinstance(w, tuple):
                    i, kind, (a, b) = w
                    for x, y in zip(a, b) if isinstance(a, list) else [(a, b)]:
                        same(x, y, f"round {i}, call {kind}")
            works = []


def elements(rank, n, ours):
    """What gloo has not: bits, bool, complex numbers, lists to all, uneven parts."""
    x = torch.tensor([0b1100, 1 << rank], dtype=torch.int64)
    for op, want in ((dist.ReduceOp.BAND, [0b1100, 0 if n > 1 else 1]), (dist.ReduceOp.BOR, [0b1100, (1 << n) - 1]), (dist.ReduceOp.BXOR, [0b1100 * (n % 2), (1 << n) - 1])):
        y = x.clone()
        dist.all_reduce(y, op, group=ours)
        same(y, torch.tensor(want), f"{op}")
    b = torch.tensor([True, rank == 0, False])
    dist.all_reduce(b, group=ours)
    same(b, torch.tensor([True, True, False]), "or")
    z = torch.tensor([complex(rank, 1), 2j])
    dist.all_reduce(z, group=ours)
    same(z, torch.tensor([complex(n * (n - 1) // 2, n), complex(0, 2 * n)]), "complex sum")
    for factor in [1 / k for k in range(1, 400)]:  # FSDP2 has one a step, where that divides by the tokens of all ranks
        op = dist._make_nccl_premul_sum(factor)
        x, y, z, b = torch.ones(2), torch.ones(3).as_strided((2,), (2,)), torch.zeros(1), torch.ones(1, dtype=torch.bfloat16)
        dist.all_reduce(x, op, group=ours)
        dist.reduce(y, 0, op, group=ours)
        dist.reduce_scatter_tensor(z, torch.ones(n), op, group=ours)
        dist.reduce_scatter(b, [torch.ones_like(b)] * n, op, group=ours)
        for got in [x, z, b] + [y] * (rank == 0):
            torch.testing.assert_close(got, torch.full_like(got, n * factor), rtol=0.02 if got is b else 1e-6, atol=0)
    outs = [torch.zeros(r + 1) for r in range(n)]
    dist.all_gather(outs, torch.full((rank + 1,), float(rank)), group=ours)
    for r, out in enumerate(outs):
        same(out, torch.full((r + 1,), float(r)), "uneven all_gather")
    outs = [torch.zeros(rank + 1, dtype=torch.int16) for _ in range(n)]
    dist.all_to_all(outs, [torch.full((r + 1,), 10 * rank + r, dtype=torch.int16) for r in range(n)], group=ours)
    for r, out in enumerate(outs):
        same(out, torch.full((rank + 1,), 10 * r + rank, dtype=torch.int16), "all_to_all of lists")


def refused(rank, n, ours):
    """What does not fit is refused: no rank waits, and the group is good afterwards."""
    if rank == 0 and n > 1:
        x = torch.ones(4)
        uneven = [torch.zeros(3), torch.zeros(5)] + [torch.zeros(4) for _ in range(n - 2)]
        for call in (dist.gather, dist.scatter):
            try:
                call(x, uneven, 0, group=ours)
            except RuntimeError as e:
                assert "invalid tensor size" in str(e), e
            else:
                raise AssertionError(f"{call.__name__} takes parts that are not those of the ranks")
    # What one rank has of a sparse tensor that the others have not, all refuse.
    thing = torch.sparse_coo_tensor([[rank]], [1.0], (n,))
    larger = torch.sparse_coo_tensor([[rank]], [1.0], (n + 1,))
    for other, op, why in ((thing, dist.ReduceOp.MAX, "operation on rank 0"), (larger, dist.ReduceOp.SUM, "do not match"),
                           (thing.double(), dist.ReduceOp.SUM, "of different types")) if n > 1 else ():
        try:
            dist.all_reduce(other if rank == 0 else thing.clone(), op if rank == 0 else dist.ReduceOp.SUM, group=ours)
        except RuntimeError as e:
            assert why in str(e), e
        else:
            raise AssertionError(f"a sum of sparse tensors of which one is not as the others is not refused: {why}")
    # What fits on no rank, and shapes of which one has another number of dimensions.
    x, y = torch.ones(4), torch.zeros(3 * n)
    cube = torch.sparse_coo_tensor([[0], [0]], [1.0], (n, n)) if rank == 0 else thing
    for name, call in {
        "all_gather": lambda: dist.all_gather(list(y.split(3)), x, group=ours),
        "all_gather, uneven": lambda: dist.all_gather([torch.zeros(r + 2) for r in range(n)], torch.ones(rank + 1), group=ours),
        "gathers as one": lambda: ours.allgather_into_tensor_coalesced([y], [x]).wait(),
        "reduce_scatter": lambda: dist.reduce_scatter(x, list(y.split(3)), group=ours),
        "sums as one": lambda: ours.reduce_scatter_tensor_coalesced([x], [y]).wait(),
        "parts of no dimension": lambda: dist.all_to_all_single(torch.zeros(()), torch.ones(()), group=ours),
        "a negative part": lambda: dist.all_to_all_single(y[:n], y[:n], [n + 1, -1] + [0] * (n - 2), [n + 1, -1] + [0] * (n - 2), group=ours),
        "dimensions": lambda: dist.all_reduce(cube.clone(), group=ours),
    }.items() if n > 1 else ():
        try:
            call()
        except (RuntimeError, IndexError):
            y = torch.ones(1)
            dist.all_reduce(y, group=ours)
            same(y, torch.full((1,), float(n)), f"the sum after a refused {name}")
            y = torch.zeros(3 * n)
        else:
            raise AssertionError(f"{name}: what does not fit is taken")


def shared(rank, n, ours):
    """What a call reads lies in what it writes, or around it: at this rank's place, at another's, or between two. Tensors
    of one call share memory."""
    x = torch.full((100_000,), rank + 1.0)
    dist.all_reduce_coalesced([x[1000:2000], x, x[:50_000], x], group=ours)
    same(x, torch.full_like(x, n * (n + 1) / 2), "sums of tensors that share memory")
    for at in [2 * k for k in range(n)] + [1] * (n > 1):
        x = torch.arange(2.0 * n) + 10 * rank
        dist.all_gather_into_tensor(x, x[at : at + 2], group=ours)
        same(x, torch.cat([torch.tensor([at, at + 1.0]) + 10 * r for r in range(n)]), f"all_gather of what lies at {at}")
        x = torch.arange(2.0 * n) + 10 * rank
        dist.reduce_scatter_tensor(x[at : at + 2], x, group=ours)
        mine = torch.tensor([2.0 * rank, 2 * rank + 1]) * n + 5 * n * (n - 1)
        same(x[at : at + 2], mine, f"reduce_scatter to {at}")
    for shift in (0, 1):
        x = torch.arange(n + 1.0) + 10 * rank
        dist.all_to_all_single(x[shift : n + shift], x[:n], group=ours)
        same(x[shift : n + shift], 10 * torch.arange(float(n)) + rank, f"all_to_all to {shift}")
    x, sizes = torch.arange(float(n * n)) + 100 * rank, [rank + 1] * n
    out, given = x[: n * (n + 1) // 2], x[: n * (rank + 1)]  # rank r has r+1 elements for each rank
    dist.all_to_all_single(out, given, list(range(1, n + 1)), sizes, group=ours)
    same(out, torch.cat([torch.arange(r + 1.0) + (r + 1) * rank + 100 * r for r in range(n)]), "all_to_all of uneven parts in place")
    # Rank 1 reads what is its part of what it writes, as of an all_gather, and exchanges elements with rank 0.
    x, out, given, gets, gives = torch.arange(2.0 * n) + 100 * rank, torch.zeros(0), torch.zeros(0), [0] * n, [0] * n
    if rank == 0 and n > 1:
        out, given, gets[:2], gives[:2] = torch.zeros(2), x, [1, 1], [1, 2 * n - 1]
    elif rank == 1:
        out, given, gets[:2], gives[:2] = x, x[2:4], [2 * n - 1, 1], [1, 1]
    dist.all_to_all_single(out, given, gets, gives, group=ours)
    if rank < 2 and n > 1:
        want = torch.cat([torch.arange(1.0, 2 * n), torch.tensor([103.0])]) if rank else torch.tensor([0.0, 102.0])
        same(out, want, "all_to_all of a part of what is written")


def objects(rank, n, ours, theirs):
    """Objects arrive as they are, whatever their sizes, as with gloo: around what fits in one message, and where ranks
    have different sizes."""
    edge = 4096 + 3000 - len(pickle.dumps({"rank": 0, "data": bytes(3000)}))  # 8 bytes less are the first message
    for group in (ours, theirs):
        uneven = [5000 * ((r + 1) % 2) for r in range(n)]
        for sizes in ([3] * n, [edge - 8] * n, [edge - 7] * n, [edge] * n, [100_000] * n, uneven, list(range(n))):
            got = [None] * n
            dist.all_gather_object(got, {"rank": rank, "data": bytes([rank]) * sizes[rank]}, group=group)
            assert got == [{"rank": r, "data": bytes([r]) * sizes[r]} for r in range(n)], sizes
            for root in {0, n - 1}:
                want = [bytes([i]) * size for i, size in enumerate(sizes)] + [None, (1, "two")]
                got = list(want) if rank == root else [None] * len(want)
                dist.broadcast_object_list(got, root, group=group)
                assert got == want, sizes
        got = [None] * n
        dist.all_gather_object(got, torch.arange(3) + rank, group=group, weights_only=True)
        for r, t in enumerate(got):
            same(t, torch.arange(3) + r, "a tensor as an object")
        got = [torch.ones(2) if rank == 0 else None, 7 if rank == 0 else None]
        dist.broadcast_object_list(got, group=group, device=torch.device("cpu"), weights_only=True)
        same(got[0], torch.ones(2), "a tensor in a list")
        assert got[1] == 7
    dist.broadcast_object_list([], group=ours)
    with torch.device("meta"):  # where models are made without memory
        got, listed = [None] * n, [rank]
        dist.all_gather_object(got, rank, group=ours), dist.broadcast_object_list(listed, n - 1, group=ours)
    assert got == list(range(n)) and listed == [n - 1], (got, listed)
    if n > 1:
        try:
            dist.broadcast_object_list([1, 2] if rank == 0 else [None], group=ours)
        except ValueError as e:
            assert rank > 0 and "a list of another length than 1" in str(e), e
        else:
            assert rank == 0, "a list of another length is taken"


def groups(rank, n):
    """Groups of some ranks that these alone make, messages that cross in any order, a timeout of 400 years, and many groups, one after the other."""
    dist.barrier(group=dist.new_group(backend="goccl", timeout=timedelta(days=146_000)))
    # PyTorch counts the groups that each rank has made, and names those that follow by the count, which now differs.
    if rank < 2:
        pair = dist.new_group([0, 1], backend="goccl", use_local_synchronization=True)
        if rank == 0:
            dist.new_group([0], backend="goccl", use_local_synchronization=True)
        got = [torch.zeros(3) for _ in range(2)]
        works = [dist.irecv(got[tag], 1 - rank, group=pair, tag=tag) for tag in range(2)]
        works += [dist.isend(torch.full((3,), 10.0 * rank + tag), 1 - rank, group=pair, tag=tag) for tag in (1, 0)]
        for w in works:
            w.wait()
        for tag in range(2):
            same(got[tag], torch.full((3,), 10.0 * (1 - rank) + tag), "messages that cross")
    descriptors = 0
    for i in range(200):
        g = dist.new_group(backend="goccl")
        x = torch.ones(2)
        dist.all_reduce(x, group=g)
        same(x, torch.full((2,), float(n)), "a new group")
        dist.destroy_process_group(g)
        if i == 9:
            descriptors = len(os.listdir("/proc/self/fd"))
    if (now := len(os.listdir("/proc/self/fd"))) > descriptors + 10:
        raise AssertionError(f"190 groups more have left {now - descriptors} descriptors")


def anyone(rank, n, ours):
    """Messages from whoever sends, large and small, while the group is in a call."""
    under_way = dist.barrier(group=ours, async_op=True)
    for size in (3, 1 << 20):
        if rank > 0:
            dist.send(torch.full((size,), float(rank)), 0, group=ours, tag=size)
            continue
        left = set(range(1, n))
        for _ in range(1, n):
            got = torch.zeros(size)
            left.remove(sender := dist.recv(got, group=ours, tag=size))
            same(got, torch.full((size,), float(sender)), "a message from anybody")
    under_way.wait()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor([float(i * i)])


def forked(rank, n, ours):
    """The workers of a DataLoader are forked from a rank. One that uses the group there gets an error, and does not hang."""
    for _ in range(2):
        x = sum(batch.sum() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="fork"))
        x = x.reshape(1)
        dist.all_reduce(x, group=ours)
        same(x, torch.tensor([140.0 * n]), "what workers have loaded")
    if (pid := os.fork()) == 0:
        refused = 0
        for use in (lambda: dist.all_reduce(torch.ones(1), group=ours), lambda: dist.send(torch.ones(1), (rank + 1) % n, group=ours), lambda: dist.barrier(group=ours)):
            try:
                use()
            except RuntimeError as e:
                refused += "forked child" in str(e) or "cannot send to self" in str(e)
        os._exit(refused)
    for _ in range(3000):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("a forked child hangs in the group")
    if os.waitstatus_to_exitcode(status) != 3:
        raise AssertionError(f"a forked child has been refused {os.waitstatus_to_exitcode(status)} times of 3")


def leaving(rank, n, store):
    """A default group is made again on the store of the one before. Timeouts may become longer than the group's first one. And a rank that ends
    with calls and messages under way ends."""
    import torch_goccl  # noqa: F401

    faulthandler.dump_traceback_later(100, exit=True)
    meeting = dist.FileStore(store, n)
    meeting.set(f"come {rank}", "")
    meeting.wait([f"come {r}" for r in range(n)])
    for _ in range(3):
        dist.init_process_group("goccl", store=meeting, rank=rank, world_size=n, timeout=timedelta(seconds=60))
        x = torch.ones(2)
        dist.all_reduce(x, group=dist.new_group(backend="goccl"))
        same(x, torch.full((2,), float(n)), "a sum of a default group that is made again")
        dist.destroy_process_group()
    dist.init_process_group("goccl", store=meeting, rank=rank, world_size=n, timeout=timedelta(seconds=3))
    for wait in (lambda: dist.monitored_barrier(timeout=timedelta(seconds=60)), dist.barrier):
        if rank == 0:
            time.sleep(4)
        wait()
        dist.set_timeout(timedelta(seconds=60))
    dist.irecv(torch.zeros(1), (rank + 1) % n, tag=3)
    dist.isend(torch.zeros(1 << 20), (rank + 1) % n, tag=4)
    if rank == 0:
        dist.all_reduce(torch.ones(1), async_op=True)


def ends(rank, n, folder):
    """What rank 0 has sent arrives after its end, without destroy_process_group."""
    import torch_goccl  # noqa: F401

    dist.init_process_group("goccl", init_method=f"file://{folder}/store", rank=rank, world_size=n)
    group = dist.new_group(backend="goccl")
    sent = [torch.full((100,), float(k + 1 if rank == 0 else 0)) for k in range(3)]
    if rank > 0:
        while not os.path.exists(folder + "/over"):
            time.sleep(0.01)
    dist.broadcast(sent[0], 0)
    dist.broadcast(sent[1], 0, group=group)
    if rank == 0 and n > 1:
        dist.isend(sent[2], 1).wait()
    elif rank == 1:
        dist.recv(sent[2], 0)
    for k, x in enumerate(sent[: 3 if rank < 2 else 2]):
        same(x, torch.full((100,), k + 1.0), "what a rank has sent that has ended")


def ending(n):
    """Runs ends on n ranks. Each is a fork of this process, and ends as Python does."""
    folder, pids = tempfile.mkdtemp(), []
    for rank in range(n):
        if (pid := os.fork()) == 0:
            faulthandler.dump_traceback_later(100, exit=True)
            ends(rank, n, folder)
            sys.exit()
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1])]
    open(folder + "/over", "w").close()
    codes += [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids[1:]]
    shutil.rmtree(folder)
    if codes != [0] * n:
        sys.exit(f"own.py: ranks that end without destroy_process_group ended with {codes}")


def nested(rank, n, ours):
    """Callbacks of futures wait for calls of the same group, several at once, as PyTorch's PowerSGD hook does."""
    if rank == n - 1:
        time.sleep(0.2)  # so that the others' calls have not ended when then is called

    def then(y):
        return lambda _: dist.all_reduce(y, group=ours, async_op=True).get_future().wait()[0]

    for calls in (1, 8):
        works = [dist.all_reduce(torch.ones(3), group=ours, async_op=True) for _ in range(calls)]
        # The calls of the callbacks are alike, since those of several futures have no order.
        for result in [w.get_future().then(then(torch.ones(3))) for w in works]:
            same(result.wait(), torch.full((3,), float(n)), "a call in a callback")


def lined(rank, n, ours, store):
    """Small asynchronous calls begin whether or not they are waited for, end in whatever order they are, and cost a thread that waits no sleep."""
    other = dist.new_group(backend="goccl")
    alone = [dist.new_group([r], backend="goccl") for r in range(n)][rank]
    total = float(n * (n + 1) // 2)

    def call(group=ours, size=2):
        x = torch.full((size,), rank + 1.0)
        return x, dist.all_reduce(x, group=group, async_op=True)

    def ends(x, work):
        work.wait()
        same(x, torch.full_like(x, total), "a call in line")

    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(400):
        call(alone)[1].wait()
    if (slept := resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before) > 200:
        raise AssertionError(f"the thread that waited for 400 small calls slept {slept} times")
    for _ in range(20):  # each rank waits in another order
        calls = [call(), call(other), call(), call(other, 5000)]
        random.Random(rank).shuffle(calls)
        for c in calls:
            ends(*c)
    first, last = call(), call()
    same_now = torch.full((2,), rank + 1.0)
    dist.all_reduce(same_now, group=ours)  # has its place behind them
    same(same_now, torch.full((2,), total), "a call behind others")
    ends(*last), ends(*first)

    x, work = call()
    while not work.is_completed():
        time.sleep(0.001)
    same(x, torch.full_like(x, total), "a call that is asked for its end")
    x, work = call()
    same(work.get_future().wait()[0], torch.full_like(x, total), "a call with a future")

    # Nobody waits for the call of rank 0, whose end the others tell it.
    c = call()
    if rank > 0:
        ends(*c)
        store.set(f"ended {rank}", "")
    else:
        store.wait([f"ended {r}" for r in range(1, n)])
    ends(*c)

    # A thread is in a call while another makes one, and a limit of a wait is kept, while the others do not come. A forked child does not wait.
    if rank == 0:
        c = call()
        thread = threading.Thread(target=ends, args=c)
        thread.start()
        time.sleep(0.05)
        d = call()
        try:
            d[1].wait(timedelta(milliseconds=50))
        except RuntimeError:
            pass
        else:
            raise AssertionError("a call ends that the others have not made")
        if (pid := os.fork()) == 0:
            try:
                d[1].wait()
            except RuntimeError as e:
                os._exit("forked child" in str(e))
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 1:
            raise AssertionError("a forked child is not told that it cannot wait")
        store.set("come", "")
        thread.join()
        ends(*d)
    else:
        store.wait(["come"])
        c, d = call(), call()
        ends(*d), ends(*c)

    x, work = call(other)
    dist.destroy_process_group(other)  # begins it, and waits for it
    work.wait()
    same(x, torch.full_like(x, total), "a call of a group that is destroyed")

    # A thread of rank 0 is in a call while the group is destroyed there, and the others come later.
    late, sums = dist.new_group(backend="goccl"), []

    def waits():
        x, work = call(late)
        work.wait()
        sums.append(x)

    if rank == 0:
        threads = threading.Thread(target=waits), threading.Timer(0.1, store.set, ["late", ""])
        for t in threads:
            t.start()
        time.sleep(0.05)
        dist.destroy_process_group(late)
        for t in threads:
            t.join()
    else:
        store.wait(["late"])
        waits()
        dist.destroy_process_group(late)
    same(torch.cat(sums), torch.full((2,), total), "a call that a thread waits for in a group that is destroyed")


def monitored(rank, n, store):
    """A rank that does not come to a monitored barrier costs all the barrier, and not the group: the first one, and another."""
    group, late = dist.new_group(backend="goccl"), n - 1
    for when in "first", "another":
        if rank == late:
            store.wait([when])
        try:
            dist.monitored_barrier(group, timedelta(milliseconds=500), wait_all_ranks=True)
        except RuntimeError as e:
            said = f"Ranks {late} failed to pass monitoredBarrier in 500 ms" if rank == 0 else "successfully reached monitoredBarrier"
            assert said in str(e), e
            if rank == 0:
                store.set(when, "")
        else:
            raise AssertionError("a monitored barrier ends well that a rank has not come to")
        dist.monitored_barrier(group)
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        same(x, torch.full((1,), float(n)), "the sum after a monitored barrier that failed")
    # Rank 0 has no time for the first, which is over for the others, too, and there for the second.
    try:
        dist.monitored_barrier(group, timedelta(seconds=0 if rank == 0 else 100))
    except RuntimeError as e:
        assert rank > 0 or "Rank 0 timed out" in str(e), e
    else:
        raise AssertionError("a monitored barrier ends well that rank 0 has no time for")
    dist.monitored_barrier(group, timedelta(seconds=100))


def twice(rank, n, store):
    """A default group with spares beside one that there is is refused, and no other group is it afterwards."""
    import torch_goccl

    try:
        torch_goccl.init_process_group(0, rank, n, store)
    except ValueError:
        pass
    else:
        raise AssertionError("there are two default groups")
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group([rank], backend="goccl", use_local_synchronization=True))
    same(x, torch.ones(1), "the sum of a rank alone")


def missed():
    """Rank 0 names all ranks that have not come, up to 16."""
    import torch_goccl

    for here, missing in ([], "ranks 1, 2, 3 have"), ([1, 3], "rank 2 has"), ([1, 2, 3], "ranks 1, 2, 3 have"):
        store = dist.HashStore()
        for r in here:
            store.set(f"goccl/hello/{r}", "x")
        try:
            torch_goccl._fresh(store, 0, 4, 0.01)
        except dist.DistBackendError as e:
            assert f"rank 0 of 4: after 0.01s {missing} not joined" in str(e), e
        else:
            raise AssertionError("ranks have joined that are not there")
    try:
        torch_goccl._fresh(dist.HashStore(), 0, 40, 0.01)
    except dist.DistBackendError as e:
        assert "14, 15, 16 and 23 more have not joined" in str(e), e


def abandoned(rank, n):
    """A group ends with a message under way that nobody sends."""
    group = dist.new_group(backend="goccl")
    work = dist.irecv(torch.zeros(1), (rank + 1) % n, group=group, tag=9)
    dist.destroy_process_group(group)
    del group
    gc.collect()
    try:
        work.wait()
    except dist.DistBackendError:
        return
    raise AssertionError("a message has come that nobody sent")


def crossed(rank, n):
    """Two threads of one group that ranks hear in different orders, as DCP's async_save on the group that trains: the error says so."""
    group = dist.new_group(backend="goccl")
    thread = threading.Thread(target=lambda: dist.all_reduce(torch.ones(2), group=group))
    thread.start()
    thread.join()
    try:
        dist.all_reduce(torch.ones(3 if rank else 5), group=group)
    except dist.DistBackendError as e:
        assert "give async_save, or that thread, a group of its own" in str(e), e
    else:
        raise AssertionError("calls that differ have ended well")


def checkpoint(rank, n, folder):
    """DCP saves with a group of its own while the default group trains on, and what it has saved is what was there."""
    mine = dist.new_group(backend="goccl")
    state = {f"part {rank}": torch.full((1000,), float(rank)), "all": torch.arange(100.0)}
    saving = dcp.async_save({k: v.clone() for k, v in state.items()}, checkpoint_id=folder, process_group=mine)
    for _ in range(200):
        x = torch.ones(100)
        dist.all_reduce(x)
        same(x, torch.full((100,), float(n)), "a sum beside a checkpoint")
    saving.result()
    dist.barrier()
    loaded = {k: torch.zeros_like(v) for k, v in state.items()}
    dcp.load(loaded, checkpoint_id=folder, process_group=mine)
    for k, v in state.items():
        same(loaded[k], v, "what was saved")


def training(rank, n, backend, kind):
    """The losses of a small model: DistributedDataParallel, also compiled, FSDP2, or its layers as DTensors."""
    torch.manual_seed(1)
    width = 12 if 12 % n == 0 else 3 * n  # which n ranks cut evenly
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    group = dist.new_group(backend=backend)
    if kind in ("ddp", "compiled"):
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        if kind == "compiled":
            model = torch.compile(model, backend="aot_eager")
    else:
        mesh = DeviceMesh.from_group(group, "cpu")
        if kind == "fsdp2":
            for layer in (model[0], model[2], model):
                fully_shard(layer, mesh=mesh)
        else:
            parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draw = torch.Generator().manual_seed(0 if kind == "tensors" else rank)
    losses = []
    for _ in range(10):
        x = torch.randn(32, 8, generator=draw)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def main(rank, n, store):
    try:
        run(rank, n, store)
    except BaseException:
        traceback.print_exc()  # which mp.spawn shows to who joins all, and nobody does
        raise


def run(rank, n, store):
    import torch_goccl

    faulthandler.dump_traceback_later(200, exit=True)  # says where a rank hangs

    assert torch_goccl.version()
    dist.init_process_group("goccl", init_method="file://" + store, rank=rank, world_size=n)
    assert dist.get_backend() == "goccl"
    ours, theirs = dist.group.WORLD, dist.new_group(backend="gloo")
    random_calls(rank, n, ours, theirs, 150)
    elements(rank, n, ours)
    refused(rank, n, ours)
    shared(rank, n, ours)
    objects(rank, n, ours, theirs)
    nested(rank, n, ours)
    if n > 1:
        lined(rank, n, ours, dist.FileStore(store + ".lined", n))
        monitored(rank, n, dist.FileStore(store + ".monitored", n))
    anyone(rank, n, ours)
    forked(rank, n, ours)
    for kind in ("ddp", "fsdp2", "tensors") + (("compiled",) if n > 2 else ()):
        a, b = training(rank, n, "goccl", kind), training(rank, n, "gloo", kind)
        if not torch.allclose(a, b, rtol=0 if n == 2 else 1e-5, atol=0):
            raise AssertionError(f"{kind}: losses are {a}, and with gloo {b}")
    checkpoint(rank, n, store + ".checkpoint")
    if n > 1:
        crossed(rank, n)
    groups(rank, n)  # after which gloo can make none
    twice(rank, n, dist.FileStore(store + ".twice", n))
    if rank == 0:
        missed()
    if n > 1:
        abandoned(rank, n)
    try:
        dist.barrier()  # which others may still be in when the last one has left it
        if rank == n - 1:  # is lost: the others learn who
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(1))
    except dist.DistBackendError as e:
        assert f"rank {n - 1} lost" in str(e), e
    else:
        raise AssertionError("a lost rank is not noticed")
    print(f"own.py: rank {rank} of {n} is done", flush=True)
    os._exit(0)


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    ending(ranks)
    with tempfile.TemporaryDirectory() as tmp:
        if ranks > 1:
            mp.start_processes(leaving, (ranks, tmp + "/leaving"), nprocs=ranks, start_method="fork")
        started = mp.start_processes(main, (ranks, tmp + "/store"), nprocs=ranks, join=False, start_method="fork")
        for p in started.processes:
            p.join(240)
        codes = [p.exitcode for p in started.processes]
        for p in started.processes:
            if p.is_alive():
                p.kill()
    if codes != [0] * (ranks - 1) + [-signal.SIGKILL]:
        sys.exit(f"own.py: the ranks ended with {codes}")
