// Package goccl is the root of a module for collective communication: AllReduce, Broadcast,
// AllGather and their relatives on slices and on device memory, across the ranks of a parallel job.
// It has no code itself.
//
//   - ccl has the collectives: a program calls ccl.Join, then ccl.AllReduce and the like
//   - ccl/boot finds rank and size under a launcher, and starts ranks
//   - ccl/ccltest runs a test function as n ranks
//   - train splits the training of a model: DDP, ZeRO, tensor, sequence and pipeline parallelism, checkpoints
//   - bench measures bus bandwidth with the flags and columns of nccl-tests, and starts programs as ranks: bench launch
//   - cuda, rocm and xpu are devices, memory and streams; mpi is MPI for Go programs; xla compiles programs for GPUs
//   - examples has programs to begin with
//
// The packages need no C. Build tags add the engines of libraries, which are opened at run time:
// nccl, rccl, oneccl, mpi.
//
// docs/tutorial.md begins with the smallest program; docs/coming-from.md translates from MPI,
// mpi4py, torch.distributed, Horovod and NCCL.
package goccl
