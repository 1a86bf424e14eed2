"""goccl as a process group of torchft, in the place of its ProcessGroupGloo.

    from torch_goccl.torchft import ProcessGroupGoccl
    manager = torchft.Manager(pg=ProcessGroupGoccl(), ...)
"""
import torch
from torch.distributed import ProcessGroup
from torchft.process_group import ProcessGroupWrapper

import torch_goccl


class ProcessGroupGoccl(ProcessGroupWrapper):
    """ProcessGroupGoccl is a group that torchft configures anew for each quorum, and aborts when a replica is lost."""

    def _create_pg(self, store, rank, world_size):
        pg = ProcessGroup(store, rank, world_size)
        name = f"torchft_quorum_{self._quorum_id}"
        backend = torch_goccl._C.create(store, rank, world_size, int(self._timeout.total_seconds() * 1000), name, "goccl", False, 0)
        pg._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        pg._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, backend)
        return pg

    def errored(self):
        """errored returns why the group has failed, which names the rank at fault, or None."""
        if self._pg is None:
            return None
        why = torch_goccl._C.failed(self._pg._get_backend(torch.device("cpu")))
        return RuntimeError("goccl: " + why) if why else None

    def getBackendName(self):
        return "torchft-goccl"
