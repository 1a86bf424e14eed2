package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// testCase is a comparison: goccl in some way, with the best of some others.
type testCase struct {
	name, what string
	ops        string // of opNames
	ranks      int
	min, max   int
	factor     int
	cores      int // it takes so many
	inplace    bool
	limit      bool   // large sizes are held against what limits.c does, too
	written    bool   // each message is written just before it is sent
	beside     string // what else runs on the cores meanwhile: besideLoops, besideJob
	ours       peer
	against    []peer
	bars       []bar // what the ratio shall be at most
	geomean    float64
}

// bar is the ratio that sizes from one to another shall have at most.
type bar struct {
	from, to int
	ratio    float64
}

// barred says the bars of a case in a line.
func (c *testCase) barred() string {
	var parts []string
	for _, b := range c.bars {
		parts = append(parts, fmt.Sprintf("%.3g from %s to %s", b.ratio, sizeOf(b.from), sizeOf(b.to)))
	}
	if c.geomean > 0 {
		parts = append(parts, fmt.Sprintf("%.3g in the geometric mean of each operation", c.geomean))
	}
	return strings.Join(parts, "; ")
}

func sizeOf(bytes int) string {
	switch {
	case bytes >= mib && bytes%mib == 0:
		return strconv.Itoa(bytes/mib) + " MiB"
	case bytes >= kib && bytes%kib == 0:
		return strconv.Itoa(bytes/kib) + " KiB"
	}
	return strconv.Itoa(bytes) + " B"
}

func (c *testCase) inPlace() string {
	if c.inplace {
		return "1"
	}
	return "0"
}

func (c *testCase) operations() []string { return strings.Fields(c.ops) }

const (
	kib = 1 << 10
	mib = 1 << 20
)

func shm(env []string, args ...string) peer {
	return peer{name: "goccl", command: goccl(false, args...), env: env}
}

func tcp(args ...string) peer { return peer{name: "goccl", command: goccl(true, args...)} }

var noRead = []string{"GOCCL_SHM_READ=0"}

const otherOps = "broadcast allgather reduce reduce_scatter scatter gather alltoall alltoallv sendrecv barrier"

var cases = []testCase{
	{name: "allreduce-2", what: "2 ranks, ordinary slices", ops: "allreduce", ranks: 2, min: 8, max: 256 * mib,
		factor: 4, limit: true, ours: shm(nil), against: shared,
		bars: []bar{{8, 2 * kib, 0.6}, {4 * kib, 256 * kib, 0.5}, {512 * kib, 16 * mib, 0.5}, {32 * mib, 256 * mib, 0.35}}},
	{name: "allreduce-2-noread", what: "the same, without permission to read a neighbour's memory", ops: "allreduce",
		ranks: 2, min: 2 * kib, max: 256 * mib, factor: 4,
		ours: shm(noRead), against: shared,
		bars: []bar{{2 * kib, 256 * kib, 0.8}, {512 * kib, 16 * mib, 0.85}, {32 * mib, 256 * mib, 0.4}}},
	{name: "allreduce-2-make", what: "the same, on MakeSlice memory", ops: "allreduce", ranks: 2, min: 4 * kib,
		max: 256 * mib, factor: 4,
		ours: shm(nil, "-mem", "make"), against: shared,
		bars: []bar{{4 * kib, 8 * kib, 0.35}, {16 * kib, 1 * mib, 0.2}, {2 * mib, 256 * mib, 0.4}}},
	{name: "allreduce-2-make-inplace", what: "on MakeSlice memory, in place", ops: "allreduce", ranks: 2, min: 4 * kib,
		max: 256 * mib, factor: 4, inplace: true,
		ours: shm(nil, "-mem", "make"), against: shared, bars: []bar{{4 * kib, 256 * mib, 0.25}}},
	{name: "others-2", what: "the other collectives, 2 ranks, shared memory", ops: otherOps, ranks: 2, min: 8,
		max: 64 * mib, factor: 8, limit: true, ours: shm(nil), against: shared,
		bars: []bar{{0, 64 * mib, 1.0}}, geomean: 0.65},
	{name: "allreduce-4", what: "4 ranks", ops: "allreduce", ranks: 4, min: 8, max: 64 * mib, factor: 8, ours: shm(nil),
		against: shared,
		bars:    []bar{{8, 64 * mib, 1.0}}, geomean: 0.7},
	{name: "others-4", what: "the other collectives, 4 ranks", ops: otherOps, ranks: 4, min: 8, max: 16 * mib, factor: 8,
		ours: shm(nil), against: shared,
		bars: []bar{{0, 16 * mib, 1.0}}, geomean: 0.7},
	{name: "allreduce-8", what: "8 ranks", ops: "allreduce", ranks: 8, min: 8, max: 64 * mib, factor: 8, ours: shm(nil),
		against: shared,
		bars:    []bar{{8, 64 * mib, 1.0}}, geomean: 0.7},
	{name: "others-8", what: "the other collectives, 8 ranks", ops: otherOps, ranks: 8, min: 8, max: 16 * mib, factor: 8,
		ours: shm(nil), against: shared,
		bars: []bar{{0, 16 * mib, 1.0}}, geomean: 0.7},
	{name: "allreduce-16", what: "16 ranks with a core each", ops: "allreduce", ranks: 16, cores: 16, min: 8,
		max: 64 * mib, factor: 8, ours: shm(nil), against: shared,
		bars: []bar{{8, 64 * mib, 1.0}}, geomean: 0.7},
	{name: "others-16", what: "the other collectives, 16 ranks with a core each", ops: otherOps, ranks: 16, cores: 16,
		min: 8, max: 16 * mib, factor: 8, ours: shm(nil), against: shared,
		bars: []bar{{0, 16 * mib, 1.0}}, geomean: 0.7},
	{name: "ranks-16", what: "16 ranks of one host", ops: "allreduce", ranks: 16, min: 8, max: 1 * mib, factor: mib / 8,
		ours: shm(nil), against: mpis,
		bars: []bar{{8, 1 * mib, 0.7}}},
	{name: "ranks-32", what: "32 ranks of one host", ops: "allreduce", ranks: 32, min: 8, max: 1 * mib, factor: mib / 8,
		ours: shm(nil), against: mpis,
		bars: []bar{{8, 1 * mib, 0.7}}},
	{name: "ranks-64", what: "64 ranks of one host", ops: "allreduce", ranks: 64, min: 8, max: 1 * mib, factor: mib / 8,
		ours: shm(nil), against: mpis,
		bars: []bar{{8, 1 * mib, 0.7}}},
	{name: "sendrecv-written", what: "SendRecv, 2 ranks, of messages that were just written", ops: "sendrecv", ranks: 2,
		min: 64 * kib, max: 16 * mib, factor: 4,
		written: true, ours: shm(nil), against: shared, bars: []bar{{64 * kib, 16 * mib, 0.8}}},
	{name: "allreduce-4-make", what: "4 ranks on MakeSlice memory", ops: "allreduce", ranks: 4, min: 32 * kib,
		max: 64 * mib, factor: 8,
		ours: shm(nil, "-mem", "make"), against: shared, bars: []bar{{32 * kib, 64 * mib, 0.4}}},
	{name: "allreduce-8-make", what: "8 ranks on MakeSlice memory", ops: "allreduce", ranks: 8, min: 32 * kib,
		max: 64 * mib, factor: 8,
		ours: shm(nil, "-mem", "make"), against: shared, bars: []bar{{32 * kib, 64 * mib, 0.4}}},
	{name: "tcp-2", what: "TCP on loopback, 2 ranks", ops: "allreduce", ranks: 2, min: 8, max: 64 * mib, factor: 8,
		ours: tcp(), against: loopback,
		bars: []bar{{8, 64 * mib, 1.0}}, geomean: 0.65},
	{name: "tcp-2-others", what: "the other collectives over TCP on loopback, 2 ranks", ops: otherOps, ranks: 2, min: 8,
		max: 16 * mib, factor: 8,
		ours: tcp(), against: loopback, bars: []bar{{0, 16 * mib, 1.0}}, geomean: 0.65},
	{name: "tcp-4", what: "TCP on loopback, 4 ranks", ops: "allreduce", ranks: 4, min: 8, max: 64 * mib, factor: 8,
		ours: tcp(), against: loopback,
		bars: []bar{{8, 64 * mib, 1.0}}, geomean: 0.65},
	{name: "tcp-4-others", what: "the other collectives over TCP on loopback, 4 ranks", ops: otherOps, ranks: 4, min: 8,
		max: 16 * mib, factor: 8,
		ours: tcp(), against: loopback, bars: []bar{{0, 16 * mib, 1.0}}, geomean: 0.65},
	{name: "netlab-2x2", what: "2 hosts of test/lab, 2 ranks each (test/lab/peers.sh)", ops: "allreduce", ranks: 4,
		min: 8, max: 64 * mib, factor: 8,
		ours:    onLab("goccl", func(b *builder) []string { return []string{b.self, "measure"} }),
		against: []peer{onLab("Open MPI", func(b *builder) []string { return []string{filepath.Join(b.dir, "openmpi")} })},
		bars:    []bar{{8, 64 * mib, 0.8}}},
	{name: "start-2", what: "Join of 2 processes of a host, beside MPI_Init and Gloo's rendezvous", ops: "start", ranks: 2,
		min: 8, max: 8, factor: 2, ours: shm(nil), against: shared, bars: []bar{{0, 8, 1.0}}},
	{name: "start-8", what: "Join of 8 processes of a host", ops: "start", ranks: 8, min: 8, max: 8, factor: 2,
		ours: shm(nil), against: shared, bars: []bar{{0, 8, 1.0}}},
	{name: "start-64", what: "Join of 64 processes of a host", ops: "start", ranks: 64, min: 8, max: 8, factor: 2,
		ours: shm(nil), against: shared, bars: []bar{{0, 8, 1.0}}},
	{name: "start-tcp-2", what: "Join of 2 hosts, by TCP on loopback", ops: "start", ranks: 2, min: 8, max: 8, factor: 2,
		ours: tcp(), against: loopback, bars: []bar{{0, 8, 1.0}}},
	{name: "start-tcp-4", what: "Join of 4 hosts, by TCP on loopback", ops: "start", ranks: 4, min: 8, max: 8, factor: 2,
		ours: tcp(), against: loopback, bars: []bar{{0, 8, 1.0}}},
	{name: "memory-2", what: "VmRSS without vectors, idle (0 bytes) and after an AllReduce of each size, 2 ranks",
		ops: "memory", ranks: 2, min: 8, max: 64 * mib, factor: 8, ours: shm(nil), against: shared,
		bars: []bar{{0, 64 * mib, 1.0}}},
	{name: "memory-tcp-2", what: "the same over TCP on loopback", ops: "memory", ranks: 2, min: 8, max: 64 * mib,
		factor: 8, ours: tcp(), against: loopback, bars: []bar{{0, 64 * mib, 1.0}}},
	{name: "bfloat16", what: "bfloat16 against our own float32 of as many elements (bytes: of float32)",
		ops: "allreduce", ranks: 2, min: 8, max: 64 * mib, factor: 8,
		ours: shm(nil, "-type", "bfloat16", "-counts", "1"), against: []peer{shm(nil)},
		bars: []bar{{8, 512 * kib, 1.2}, {1 * mib, 64 * mib, 1.0}}},
	{name: "float16", what: "float16 likewise", ops: "allreduce", ranks: 2, min: 8, max: 64 * mib, factor: 8,
		ours: shm(nil, "-type", "float16", "-counts", "1"), against: []peer{shm(nil)},
		bars: []bar{{8, 512 * kib, 1.2}, {1 * mib, 64 * mib, 1.0}}},
	{name: "goroutines", what: "2 goroutine ranks of one process against our own shared memory", ops: "allreduce",
		ranks: 2, min: 8, max: 64 * mib, factor: 8,
		ours: peer{name: "goccl", command: func(b *builder, n int) []string {
			return []string{b.self, "measure", "-t",
				"2"}
		}},
		against: []peer{shm(nil)}, bars: []bar{{8, 64 * mib, 1.1}}},
	{name: "queue", what: "Queue against the blocking call", ops: "allreduce", ranks: 2, min: 64 * mib, max: 64 * mib,
		factor: 4,
		ours:   shm(nil, "-queue"), against: []peer{shm(nil)}, bars: []bar{{64 * mib, 64 * mib, 1.05}}},
	{name: "direct", what: "MakeSlice memory against the best that limits.c does on common memory", ops: "allreduce",
		ranks: 2, min: 64 * mib, max: 64 * mib, factor: 4,
		ours: shm(nil, "-mem", "make"), against: []peer{limits}, bars: []bar{{64 * mib, 64 * mib, 1.15}}},
	{name: "kernel-float32", what: "our kernel for float32 against limits.c's, in L2", ops: "kernel", ranks: 1,
		min: kernelBytes, max: kernelBytes, factor: 4,
		ours: kernelOf("float"), against: []peer{limits}, bars: []bar{{kernelBytes, kernelBytes, 1 / 0.95}}},
	{name: "kernel-float16", what: "our kernel for float16 against that for float32", ops: "kernel", ranks: 1,
		min: kernelBytes, max: kernelBytes, factor: 4,
		ours: kernelOf("half"), against: []peer{kernelOf("float")}, bars: []bar{{kernelBytes, kernelBytes, 1 / 0.68}}},
	{name: "kernel-bfloat16", what: "our kernel for bfloat16 likewise", ops: "kernel", ranks: 1, min: kernelBytes,
		max: kernelBytes, factor: 4,
		ours: kernelOf("bfloat16"), against: []peer{kernelOf("float")}, bars: []bar{{kernelBytes, kernelBytes, 1 / 0.5}}},
	{name: "two-jobs", what: "2 ranks beside another such job of the same library on the same two cores",
		ops: "allreduce", ranks: 2, min: 8, max: 16 * mib,
		factor: 64, beside: besideJob, ours: shm(nil), against: shared, bars: []bar{{8, 16 * mib, 0.8}}},
	{name: "busy-loops", what: "2 ranks beside a busy loop on each core", ops: "allreduce", ranks: 2, min: 8,
		max: 16 * mib, factor: 64,
		beside: besideLoops, ours: shm(nil), against: shared, bars: []bar{{8, 16 * mib, 0.8}}},
	{name: "busy-loops-8", what: "8 ranks beside a busy loop on each core", ops: "allreduce", ranks: 8, min: 8,
		max: 2 * mib, factor: 64,
		beside: besideLoops, ours: shm(nil), against: shared, bars: []bar{{8, 2 * mib, 0.8}}},
	{name: "engine-mpich", what: "the engine mpi under MPICH against C", ops: "allreduce", ranks: 2, min: 32 * kib,
		max: 64 * mib, factor: 4,
		ours: engine("mpich", underMPICH), against: []peer{mpich()}, bars: []bar{{32 * kib, 64 * mib, 1.03}}},
	{name: "engine-openmpi", what: "the engine mpi under Open MPI against C", ops: "allreduce", ranks: 2, min: 32 * kib,
		max: 64 * mib, factor: 4,
		ours: engine("openmpi", underOpenMPI), against: []peer{openmpi("Open MPI")}, bars: []bar{{32 * kib, 64 * mib, 1.03}}},
	{name: "engine-mpich-others", what: "the other collectives under MPICH against C", ops: otherOps, ranks: 2,
		min: 32 * kib, max: 64 * mib, factor: 8,
		ours: engine("mpich", underMPICH), against: []peer{mpich()}, bars: []bar{{32 * kib, 64 * mib, 1.03}}},
	{name: "engine-openmpi-others", what: "and under Open MPI", ops: otherOps, ranks: 2, min: 32 * kib, max: 64 * mib,
		factor: 8,
		ours:   engine("openmpi", underOpenMPI), against: []peer{openmpi("Open MPI")},
		bars: []bar{{32 * kib, 64 * mib, 1.03}}},
}
