package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// How a call of one host gets at the data of the other ranks, by its size. The sizes are in package tuning. The algorithms of
// Comms that span hosts are chosen in internal/algo.

// streams reports whether staged results of n bytes, of a call of that kind between two ranks, go past the caches.
func streams(k Kind, n int) bool {
	switch k {
	case Reduce:
		return n >= tuning.CPU.StreamReduceFrom
	case AllReduce:
		return n >= tuning.CPU.StreamAllReduceFrom
	}
	return n >= tuning.CPU.StreamFrom
}

// streamsOwn reports whether what a rank sends itself, so many bytes among so many of results, does.
func streamsOwn(own, results int) bool {
	return results >= tuning.CPU.StreamFrom || own+results > tuning.CPU.StreamOwnOver
}

type allReduceWay uint8

const (
	stageAll   allReduceWay = iota
	direct                  // all memory can be touched: each rank reduces a part for all
	readAll                 // two ranks read each other's operand
	readHalves              // each reduces a part, and reads the others' parts
)

// allReduceWay is how an AllReduce of n bytes goes, once the offers are known.
func (c *Team) allReduceWay(w way, n int) allReduceWay {
	switch {
	case w == byDirect && c.n <= tuning.MaxDirect && (c.Reach.all || 2*shm.Page <= c.chunk): // which edges fit into
		return direct
	case w == byStage || !c.readsAll(n, c.someInPlace()):
		return stageAll
	case c.n == 2 && n <= tuning.ReadAllTo && !c.someInPlace():
		return readAll
	}
	return readHalves
}

// readsAll reports whether ranks that read each other's memory do so in an AllReduce of n bytes.
func (c *Team) readsAll(n int, inPlace bool) bool {
	return n <= tuning.ReadHalvesTo && (c.n > 2 || n >= tuning.ReadTwoFrom && !inPlace || n >= tuning.ReadInPlaceFrom)
}

// reads reports whether a call in which a rank fetches n bytes from another reads them where they are.
func (c *Team) reads(ctx context.Context, k *Call, n int) (bool, *Fault) {
	if n <= c.local.inline {
		return false, nil
	}
	if f := c.acquaint(ctx, k); f != nil {
		return false, f
	}
	return c.Reach.all || c.Reach.reads && readPays(k.Kind, n), nil
}

// readPays reports whether to read n bytes from another rank beats staging them.
func readPays(k Kind, n int) bool {
	switch k {
	case Reduce: // the root would do all the work
		return false
	case Broadcast:
		return n >= tuning.ReadRootFrom && n <= tuning.ReadRootTo
	case Gather, GatherV:
		return n >= tuning.ReadRootFrom
	case Scatter, ScatterV:
		return n >= tuning.ReadScatterFrom
	}
	return n >= tuning.ReadFrom
}
