// Package onegpu has the tests for which two ranks on one GPU are enough: all collectives with
// values checked, graphs, registered memory, calls that differ, ranks that are killed or stopped,
// and Abort while a kernel runs. go test runs them on the fake library; make gpu-bundle builds them
// for a machine with a GPU, where GOCCL_REAL=1 takes the real one.
//
// NCCL refuses two ranks on one GPU unless NCCL_MULTI_RANK_GPU_ENABLE=1 (2.30.3 and newer) or unless it takes them for
// ranks of two hosts: then each process has its own NCCL_HOSTID.
package onegpu
