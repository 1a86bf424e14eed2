//go:build oneccl && cgo && linux

package oneccl

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"runtime"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// A closed communicator can be destroyed once all its ranks have closed it, and then only by all of them at the
// same time. A rank cannot know that by itself. So the ranks of each new communicator tell each other what
// they have left; those whose ranks have all left, and are all here, are destroyed.

// sweepRoom is how many communicators the ranks tell of at first. One that has more says how many, and then all tell of
// that many: what a rank has never closed would otherwise keep those after it.
const sweepRoom = 16

// nameOf is what all ranks call the communicator with an id; never 0.
func nameOf(id []byte) uint64 {
	h := fnv.New64a()
	h.Write(id)
	return h.Sum64() | 1
}

func (l *library) leave(e *comm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = append(l.left, e)
}

// sweep destroys what all ranks of the new communicator e have left.
func (l *library) sweep(stop <-chan struct{}, e *comm) error {
	if e.plan.size == 1 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	l.mu.Lock()
	names := make([]uint64, len(l.left))
	for i, c := range l.left {
		names[i] = c.name
	}
	l.mu.Unlock()
	all, err := e.tell(ctx, names, sweepRoom)
	if err != nil {
		return err
	}
	most := uint64(0)
	for r := range e.plan.size {
		most = max(most, all[r*sweepRoom])
	}
	if most >= sweepRoom { // the same on all ranks
		if all, err = e.tell(ctx, names, int(most)+1); err != nil {
			return err
		}
	}
	for _, c := range l.allLeft(all) {
		err = errors.Join(err, c.destroy(stop))
	}
	return err
}

// tell sends all ranks the number of this rank's names, and as many names as there is room for.
func (e *comm) tell(ctx context.Context, names []uint64, room int) ([]uint64, error) {
	// One allocation, whose size is not constant, is on the heap: stacks move.
	both := make([]uint64, room*(e.plan.size+1))
	mine, all := both[:room], both[room:]
	mine[0] = uint64(len(names))
	copy(mine[1:], names)
	err := e.Run(ctx, []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllGather, Type: op.Uint64, Root: -1,
		Count: uint64(room)}, DstAt: uintptr(unsafe.Pointer(&all[0])), SrcAt: uintptr(unsafe.Pointer(&mine[0]))}}})
	runtime.KeepAlive(both) // the addresses keep nothing
	return all, err
}

// allLeft takes those communicators out of left that all their ranks name in all. They are in an order that
// is the same on all ranks.
func (l *library) allLeft(all []uint64) []*comm {
	ranks := map[uint64]int{}
	for _, name := range all {
		ranks[name]++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var dead []*comm
	l.left = slices.DeleteFunc(l.left, func(c *comm) bool {
		if ranks[c.name] != c.plan.size {
			return false
		}
		dead = append(dead, c)
		return true
	})
	slices.SortFunc(dead, func(a, b *comm) int { return cmp.Compare(a.name, b.name) })
	return dead
}
