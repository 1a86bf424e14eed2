"""spares.py: three ranks train with DistributedDataParallel, and a spare waits. Rank 0 is killed, then rank 2, in two
jobs: the spare takes the place, and the losses are those of a job that loses nobody, to the bit."""
import os
import signal
import sys
import tempfile
import traceback

import torch
import torch._dynamo  # noqa: F401: which each process would import at its first step
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, STEPS, LOST_AT = 3, 12, 5


def trains(lost, said):
    """Trains, and after a loss goes on from the step that a rank which was there before is at."""
    import torch_goccl

    rank = dist.get_rank()
    pair = dist.new_group([0, 2])
    torch.manual_seed(rank)  # a spare has other parameters, until it has those of a rank that was there
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step, losses, ddp = 0, [], None
    while step < STEPS:
        try:
            if ddp is None:
                if new := torch_goccl.fresh():
                    state = [(step, losses, model.state_dict(), optimizer.state_dict())]
                    dist.broadcast_object_list(state, min(set(range(RANKS)) - set(new)))
                    step, losses, parameters, momentum = state[0]
                    model.load_state_dict(parameters), optimizer.load_state_dict(momentum)
                    torch_goccl.restored()
                ddp = torch.nn.parallel.DistributedDataParallel(model)
            if rank == lost and step == LOST_AT and not said("lost"):
                os.kill(os.getpid(), signal.SIGKILL)
            x = torch.randn(32, 8, generator=torch.Generator().manual_seed(10 * step + rank))
            loss = ((ddp(x) - x.sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            mean = loss.detach() / RANKS
            dist.all_reduce(mean)
        except dist.DistBackendError as e:
            assert f"rank {lost} lost" in str(e), e
            ddp = None
            assert torch_goccl.replace() == [lost] == torch_goccl.fresh()
            continue
        optimizer.step()
        losses.append(mean.item())
        step += 1
    if rank != 1:  # a group of some ranks is there again, too
        x = torch.full((2,), rank + 1.0)
        dist.all_reduce(x, group=pair)
        assert x.tolist() == [4.0, 4.0], x
    dist.monitored_barrier()
    return losses


def process(i, lost, folder):
    import torch_goccl

    torch.set_num_threads(1)

    def said(what):
        """Whether another process has said so before."""
        try:
            os.close(os.open(os.path.join(folder, what), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return True
        return False

    try:
        store = dist.FileStore(os.path.join(folder, "store"), RANKS + 1)
        if not torch_goccl.init_process_group(spares=1, rank=i, world_size=RANKS + 1, store=store):
            os._exit(3)
        torch.save(trains(lost, said), os.path.join(folder, f"losses {dist.get_rank()}"))
        dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def job(lost):
    """The losses of a job."""
    with tempfile.TemporaryDirectory() as folder:
        started = mp.start_processes(process, (lost, folder), nprocs=RANKS + 1, join=False, start_method="fork")
        for p in started.processes:
            p.join(200)
        codes = [p.exitcode for p in started.processes]
        for p in started.processes:
            if p.is_alive():
                p.kill()
        want = [-signal.SIGKILL if r == lost else 0 for r in range(RANKS)] + [0 if lost >= 0 else 3]
        if codes != want:
            sys.exit(f"spares.py: rank {lost} is lost: the processes ended with {codes}, not {want}")
        all_losses = [torch.load(os.path.join(folder, f"losses {r}")) for r in range(RANKS)]
    if all_losses != [all_losses[0]] * RANKS or len(all_losses[0]) != STEPS:
        sys.exit(f"spares.py: rank {lost} is lost: the ranks have losses {all_losses}")
    return all_losses[0]


if __name__ == "__main__":
    whole = job(-1)
    for killed in (0, 2):
        if (losses := job(killed)) != whole:
            sys.exit(f"spares.py: rank {killed} is lost: losses are {losses}, and without a loss {whole}")
    print(f"spares.py: {RANKS} ranks have the same losses where a spare has the place of rank 0 or of rank 2: "
          f"{whole[0]:.4f} to {whole[-1]:.4f}")
