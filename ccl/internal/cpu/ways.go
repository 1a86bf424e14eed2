package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// How a call of one host gets at the data of the other ranks, by its size. These are measurements of one
// machine; `make tune` measures another. The algorithms of Comms that span hosts are chosen in internal/algo.
const (
	// Bytes that a rank reads from another: from here on reading memory beats staging,
	readFrom        = 16 << 10
	readMessageFrom = 8 << 10   // in SendRecv, where it beats the pipe,
	readAsideFrom   = 256 << 10 // of what has been set aside, since it is in place,
	readRootFrom    = 64 << 10  // where one reads and the other waits, in Broadcast and Gather,
	readRootTo      = 4 << 20   // up to here in Broadcast, in which the root has nothing else to do, and Send;
	readScatterFrom = 64 << 10  // in Scatter it copies its own block while the others read

	// Bytes of an AllReduce: up to here,
	readAllTo    = 512 << 10
	readHalvesTo = 64 << 20
	// and between two ranks, which stage all of a small vector with the offer, from here on.
	readTwoFrom     = 10 << 10
	readInPlaceFrom = 4 << 20 // where each half goes twice

	// Of results that the caches do not keep: stores that pass by them.
	streamFrom          = 4 << 20  // bytes of a result
	streamReduceFrom    = 1 << 20  // of Reduce, on Intel's CPUs
	streamAllReduceFrom = 32 << 20 // of AllReduce, there
	streamInPlaceFrom   = 64 << 20 // bytes of all operands and results, where each rank writes into those of all
	streamOwnFrom       = 2 << 20  // bytes of results, and of what a rank sends itself, on Intel's CPUs: more than L2
)

// streams reports whether staged results of n bytes, of a call of that kind between two ranks, go past the caches.
func streams(k Kind, n int) bool {
	switch {
	case ordered.Intel && k == Reduce:
		return n >= streamReduceFrom
	case ordered.Intel && k == AllReduce:
		return n >= streamAllReduceFrom
	}
	return n >= streamFrom
}

// streamsOwn reports whether what a rank sends itself, so many bytes among so many of results, does.
func streamsOwn(own, results int) bool {
	return results >= streamFrom || ordered.Intel && own+results > streamOwnFrom
}

type allReduceWay uint8

const (
	stageAll   allReduceWay = iota
	direct                  // all memory can be touched: each rank reduces a part for all
	readAll                 // two ranks read each other's operand
	readHalves              // each reduces a part, and reads the others' parts
)

// allReduceWay is how an AllReduce of n bytes goes, once the offers are known.
func (c *Comm) allReduceWay(w way, n int) allReduceWay {
	switch {
	case w == byDirect && c.n <= maxDirect && (c.reach.all || 2*shm.Page <= c.chunk): // which edges fit into
		return direct
	case w == byStage || !c.readsAll(n, c.reach.someInPlace()):
		return stageAll
	case c.n == 2 && n <= readAllTo && !c.reach.someInPlace():
		return readAll
	}
	return readHalves
}

// readsAll reports whether ranks that read each other's memory do so in an AllReduce of n bytes.
func (c *Comm) readsAll(n int, inPlace bool) bool {
	return n <= readHalvesTo && (c.n > 2 || n >= readTwoFrom && !inPlace || n >= readInPlaceFrom)
}

// reads reports whether a call in which a rank fetches n bytes from another reads them where they are.
func (c *Comm) reads(ctx context.Context, k *Call, n int) (bool, *Fault) {
	if n <= c.local.inline {
		return false, nil
	}
	if f := c.acquaint(ctx, k); f != nil {
		return false, f
	}
	return c.reach.all || c.reach.reads && readPays(k.Kind, n), nil
}

// readPays reports whether to read n bytes from another rank beats staging them.
func readPays(k Kind, n int) bool {
	switch k {
	case Reduce: // the root would do all the work
		return false
	case Broadcast:
		return n >= readRootFrom && n <= readRootTo
	case Gather, GatherV:
		return n >= readRootFrom
	case Scatter, ScatterV:
		return n >= readScatterFrom
	}
	return n >= readFrom
}
