"""PyTorch's own tests of torch.distributed on goccl: DistributedTest of the installed wheel, with goccl in gloo's place.

    suite.py                  all of them with WORLD_SIZE ranks (2), against the list unpassed.txt
    suite.py TEST ...         these alone
    suite.py -mpi             those that PyTorch keeps for MPI, since gloo has not what they call
    suite.py -ranks 8         with more than 4 ranks: those with groups of some ranks, which want as many
    suite.py -backend gloo    on gloo, to compare: says how each ended

Each test runs in WORLD_SIZE fresh forks of this process, which has imported torch. A test that is not in unpassed.txt must pass, or skip
itself; one that is must not pass, so the list may only shrink. GOCCL_HOSTID, say, or DISTINCT_HOSTS=1 changes how ranks talk.
"""
import argparse
import collections
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unittest
from datetime import timedelta

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 90  # seconds that a test may take
GRACE = 15  # seconds that the other ranks have once one has failed

parser = argparse.ArgumentParser()
parser.add_argument("tests", nargs="*")
parser.add_argument("-backend", default="goccl", choices=["goccl", "gloo"])
parser.add_argument("-ranks", type=int, default=int(os.environ.get("WORLD_SIZE", "2")))
parser.add_argument("-mpi", action="store_true")
parser.add_argument("-json", help="a file that gets a line for each test")
parser.add_argument("-logs", help="a folder that keeps what the ranks of failed tests have printed")
args = parser.parse_args()

# PyTorch's tests read these as they are imported, and choose by them which there are.
os.environ.update(BACKEND="mpi" if args.mpi else "gloo", WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.testing._internal.distributed.distributed_test as theirs  # noqa: E402
from torch.testing._internal.common_distributed import TEST_SKIPS  # noqa: E402

theirs.BACKEND, theirs.default_pg_timeout = "gloo", 40
SKIPPED = {skip.exit_code: name for name, skip in TEST_SKIPS.items()}
SKIPPED[99] = "skipped"


class Test(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    pass


def pose():
    """Puts goccl in gloo's place."""
    import torch_goccl

    dist.Backend._ensure_backend_registered("gloo")
    # Else PyTorch takes what is called gloo for its own class.
    dist.Backend.backend_type_map["gloo"] = dist.ProcessGroup.BackendType.CUSTOM
    dist.Backend._plugins["GLOO"] = dist.Backend._BackendPlugin(lambda o, x=None: torch_goccl._create(o, x, "gloo"), True)


def rank_of(name, rank, store, log):
    """Runs one rank of a test, in a fork, and ends it."""
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(fd, 1), os.dup2(fd, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", 1, closefd=False), os.fdopen(2, "w", 1, closefd=False)
    code = 1
    try:
        if os.environ.get("DISTINCT_HOSTS"):
            os.environ["GOCCL_HOSTID"] = f"host{rank}"
        if args.backend == "goccl":
            pose()
        test = Test(name)
        test.rank, test.file_name = rank, store
        theirs.Barrier.init()
        limit = theirs.CUSTOM_PG_TIMEOUT.get(name, theirs.default_pg_timeout)
        dist.init_process_group(init_method="file://" + store, backend="gloo", world_size=args.ranks, rank=rank, timeout=timedelta(seconds=limit))
        test._barrier()
        getattr(test, name)()
        test._barrier()
        dist.destroy_process_group()
        code = 0
    except SystemExit as e:
        code = e.code or 0
    except unittest.SkipTest as e:
        print("skipped:", e)
        code = 99
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)


def run(name, logs, grace):
    """How the test ended: pass, skip, fail, hang or crash. grace is how long the other ranks have once one has failed."""
    began, failed = time.time(), None
    tmp = tempfile.mkdtemp(prefix="goccl-suite-")
    try:
        os.environ["TEMP_DIR"] = tmp
        for d in ("barrier", "test_dir", "init_dir"):
            os.mkdir(f"{tmp}/{d}")
        pids = []
        for rank in range(args.ranks):
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                rank_of(name, rank, tmp + "/store", f"{logs}/{name}.{rank}")
            pids.append(pid)
        codes = {}
        while len(codes) < len(pids):
            for pid in pids:
                if pid in codes:
                    continue
                got, status = os.waitpid(pid, os.WNOHANG)
                if got:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                    if codes[pid] not in SKIPPED and codes[pid] != 0:
                        failed = failed or time.time()
                elif time.time() - began > LIMIT or failed and time.time() - failed > grace:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    codes[pid] = "hang"
            time.sleep(0.005)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    ends = [codes[pid] for pid in pids]
    if all(e == 0 for e in ends):
        return "pass"
    if all(e in SKIPPED for e in ends):
        return "skip"
    if "hang" in ends:
        return "hang"
    return "crash" if any(isinstance(e, int) and e < 0 for e in ends) else "fail"


def unpassed():
    """The tests that do not pass, and why."""
    found = {}
    with open(os.path.join(HERE, "unpassed.txt")) as f:
        for line in f:
            name, _, why = line.strip().partition(" ")
            if name and not name.startswith("#"):
                found[name] = why.strip()
    return found


def main():
    known, bad, counts = unpassed(), [], collections.Counter()
    logs = args.logs or tempfile.mkdtemp(prefix="goccl-suite-logs-")
    os.makedirs(logs, exist_ok=True)
    out = open(args.json, "a", 1) if args.json else None
    names = args.tests or unittest.TestLoader().getTestCaseNames(Test)
    if args.ranks > 4 and not args.tests:
        names = [name for name in names if "group" in name]
    if args.mpi and not args.tests:
        names = [name for name in names if "all_to_all" in name and "cuda" not in name]
        if args.ranks < 3:  # which a group of some ranks needs
            names = [name for name in names if not name.endswith("_group") or name.endswith("_full_group")]
    for name in names:
        if not hasattr(Test, name):
            sys.exit(f"suite.py: there is no test {name}")
        began = time.time()
        how = "skip" if getattr(getattr(Test, name), "__unittest_skip__", False) else run(name, logs, 2 if name in known else GRACE)
        counts[how] += 1
        if out:
            out.write(json.dumps({"test": name, "result": how, "seconds": round(time.time() - began, 2)}) + "\n")
        if args.backend == "gloo" or args.tests:
            print(f"{how:5} {name}", flush=True)
        if args.backend == "gloo" or how == "skip" or (how == "pass") != (name in known):
            continue
        bad.append(name)
        if how == "pass":
            print(f"{name} passes now: take it off unpassed.txt", flush=True)
            continue
        print(f"{name}: {how}", flush=True)
        for rank in range(args.ranks):
            with open(f"{logs}/{name}.{rank}", errors="replace") as f:
                print(f"rank {rank}:", f.read()[-3000:], flush=True)
    if not args.logs:
        shutil.rmtree(logs, ignore_errors=True)
    print(f"{args.backend}, {args.ranks} ranks:", ", ".join(f"{n} {how}" for how, n in sorted(counts.items())))
    if not args.tests and counts["pass"] < (4 if args.mpi or args.ranks > 4 else 60):
        bad.append("too few tests have run")
    sys.exit(1 if bad else 0)


main()
