"""restart.py [ROUNDS]: torchrun --standalone --max-restarts 3 restarts a job of three ranks whose last one is killed,
in two attempts.

torchrun's agent is asked as torchrun asks it, but starts the ranks from a process that has imported torch, so that a
job takes seconds. It prints how long the restarts took."""
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import uuid

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def worker(said):
    import torch_goccl  # noqa: F401

    def say(text):
        with open(said, "a") as f:
            f.write(text + "\n")

    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    try:
        dist.init_process_group("goccl")
        rank, n = dist.get_rank(), dist.get_world_size()
        pair = dist.new_group([0, 1])
        x = torch.full((10,), rank + 1.0)
        dist.all_reduce(x)
        assert x.tolist() == [n * (n + 1) / 2] * 10, x
        if rank < 2:
            y = torch.ones(1)
            dist.all_reduce(y, group=pair)
            assert y.item() == 2, y
        if rank == 0:
            say(f"step {time.time()}")
        dist.monitored_barrier()
        if attempt < 2 and rank == n - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        say(f"rank {os.environ['RANK']} in attempt {attempt}, at {time.time()}:\n{traceback.format_exc()}")
        raise


if __name__ == "__main__":
    logging.disable()  # the agent shows each rank that ends
    os.environ["GOCCL_LOG"] = "quiet"
    multiprocessing.set_forkserver_preload(["torch", "torch.distributed"])
    rounds, took = int((sys.argv[1:] or ["1"])[0]), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as tmp:
            said = os.path.join(tmp, "said")
            job = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=3, run_id=uuid.uuid4().hex, rdzv_backend="c10d",
                               rdzv_endpoint="localhost:0", max_restarts=3, monitor_interval=0.1,
                               start_method="forkserver", logs_specs=DefaultLogsSpecs(log_dir=tmp))
            try:
                elastic_launch(job, worker)(said)
                why = None
            except BaseException as e:
                why = e
            with open(said, "a+") as f:
                f.seek(0)
                text = f.read()
        steps = [float(line.split()[1]) for line in text.splitlines() if line.startswith("step ")]
        if why or len(steps) != 3:
            sys.exit(f"restart.py: the job has ended with {why!r} after {len(steps)} steps\n{text}")
        took += [b - a for a, b in zip(steps, steps[1:])]
    print(f"restart.py: {rounds} of {rounds} jobs were restarted twice; "
          f"from step to step {sorted(took)[len(took) // 2]:.1f} s")
