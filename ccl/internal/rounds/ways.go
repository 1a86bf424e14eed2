package rounds

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// How a call of one host gets at the data of the other ranks, by its size. The sizes are in package
// tuning. The algorithms of Comms that span hosts are chosen in internal/algo.

// streams reports whether staged results of n bytes, of a call of that kind between two ranks, go past the caches.
func (c *offering) streams(k call.Kind, n int) bool {
	switch k {
	case call.Reduce:
		return n >= c.local.Layout.StreamReduceFrom
	case call.AllReduce:
		return n >= c.local.Layout.StreamAllReduceFrom
	}
	return n >= c.local.Layout.StreamFrom
}

type allReduceWay uint8

const (
	stageAll   allReduceWay = iota
	direct                  // all memory can be touched: each rank reduces a part for all
	readAll                 // two ranks read each other's operand
	readHalves              // each reduces a part, and reads the others' parts
)

// readPays reports whether to read n bytes from another rank beats staging them.
func readPays(k call.Kind, n int) bool {
	switch k {
	case call.Reduce: // the root would do all the work
		return false
	case call.Broadcast:
		return n >= tuning.ReadRootFrom && n <= tuning.ReadRootTo
	case call.Gather, call.GatherV:
		return n >= tuning.ReadRootFrom
	case call.Scatter, call.ScatterV:
		return n >= tuning.ReadScatterFrom
	}
	return n >= tuning.ReadFrom
}

// allReduceWay is how an AllReduce of n bytes goes, once the offers are known.
func (c *offering) allReduceWay(w way, n int) allReduceWay {
	switch {
	case w == byDirect && c.n <= tuning.MaxDirect && (c.mem.Known.All || 2*shm.Page <= c.staging.chunk):
		// which edges fit into
		return direct
	case w == byStage || w == byRead && !c.readsAll(n, c.someInPlace()) || n > tuning.ReadHalvesTo:
		return stageAll // memory that can be touched takes no system calls, so that no size is too small for it
	case c.n == 2 && n <= tuning.ReadAllTo && !c.someInPlace():
		return readAll
	}
	return readHalves
}

// readsAll reports whether ranks that read each other's memory do so in an AllReduce of n bytes.
func (c *offering) readsAll(n int, inPlace bool) bool {
	switch {
	case n > tuning.ReadHalvesTo:
		return false
	case c.n > 2:
		return n >= c.n*tuning.ReadPartFrom
	}
	return n >= tuning.ReadTwoFrom && !inPlace || n >= tuning.ReadInPlaceFrom
}

// reads reports whether a call in which a rank fetches n bytes from another reads them where they are.
func (c *offering) reads(ctx context.Context, k *call.Call, n int) (bool, *call.Fault) {
	if n <= c.local.Inline {
		return false, nil
	}
	if f := c.acquaint(ctx, k); f != nil {
		return false, f
	}
	return c.mem.Known.All || c.mem.Known.Reads && readPays(k.Kind, n) || c.mem.Known.Moves &&
		movedPays(&c.local.Layout, k.Kind, n, c.n), nil
}

// movedPays is readPays among n ranks that read only what moves from each rank to one other, in
// blocks of so many bytes. Between two ranks, every call that does not reduce moves its data so.
func movedPays(l *tuning.Layout, k call.Kind, block, n int) bool {
	from := l.ReadMovedFrom
	if from == 0 {
		return false
	}
	switch k {
	case call.Scatter, call.ScatterV: // a root that stages goes on with the next call meanwhile
		return (n-1)*block >= 2*from
	case call.AllToAll, call.AllToAllV:
		return block >= from
	case call.Broadcast, call.AllGather, call.AllGatherV:
		return n == 2 && block >= from
	case call.Gather, call.GatherV: // the root copies its own block while the other rank stages
		return n == 2 && block >= 16*from
	}
	return false
}
