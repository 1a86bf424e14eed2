package reach

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The kernel lets no other process read some memory that its owner may read: that of
// memfd_secret(2), and what drivers map (VM_IO, VM_PFNMAP). Nothing tells so before the first read
// of it. So a rank whose read is refused asks the owner, which waits in the same call until all
// have read: wherever it waits, it copies what is asked for into memory that both have mapped.
// Nobody else notices, and the message pattern stays as it is.

// request is what a rank asks for, and gets: it has one under way. The data lie behind it.
type request struct {
	state      atomic.Uint64 // its number<<2 | wanted, given or denied
	owner      uint64        // the rank of the host that is asked
	addr, size uint64
}

const (
	wanted = 1 + iota
	given
	denied // the owner has not lent that memory

	requestData = 64
)

var _ [requestData - unsafe.Sizeof(request{})]byte

// RequestBytes is the size of a request and its data.
const RequestBytes = requestData + tuning.LentPiece

func (q *request) data(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(q), requestData)), n)
}

// lending is what a rank lends, and what it and others ask for.
type lending struct {
	lent     [2][]byte        // what others may ask for in the call under way
	asked    uint64           // the number of this rank's last request
	requests map[int]*request // by rank, as far as they are mapped
}

// Lend says that other processes may ask for these slices until the call ends.
func (c *Reach) Lend(src, dst []byte) {
	if c.rank.Site.Here.Host.Shared() {
		c.lending.lent, c.Untidy = [2][]byte{src, dst}, true
	}
}

// ask fills dst with what lies at that address in the process of rank r.
func (c *Reach) ask(ctx context.Context, r int, dst []byte, addr uint64) *call.Fault {
	q, err := c.request(c.me, true)
	if err != nil {
		return c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
	}
	for len(dst) > 0 {
		n := min(len(dst), tuning.LentPiece)
		c.lending.asked++
		q.owner, q.addr, q.size = uint64(r), addr, uint64(n)
		q.state.Store(c.lending.asked<<2 | wanted)
		c.local.Wanted(r).Add(1)
		c.rank.RingRank(r)
		for w := (plane.Waiter{}); q.state.Load()>>2 != c.lending.asked || q.state.Load()&3 == wanted; {
			if f := c.rank.Pause(ctx, &w, c.rank.Share.Ranks[r]); f != nil {
				return f
			}
		}
		if q.state.Load()&3 == denied {
			return c.rank.Stop(call.NewFault(call.Backend, c.rank.Share.Ranks[r], "the memory of rank %d cannot be read",
				c.rank.Share.Ranks[r]))
		}
		copy(dst, q.data(n))
		dst, addr = dst[n:], addr+uint64(n)
	}
	return nil
}

// give answers requests: each rank that asks this rank for memory gets it.
func (c *Reach) give() {
	for r := range c.n {
		q, err := c.request(r, false)
		if q == nil || err != nil || r == c.me {
			continue
		}
		state := q.state.Load()
		if state&3 != wanted {
			continue
		}
		owner, addr, size := q.owner, q.addr, q.size
		ordered.Loaded()
		if q.state.Load() != state || owner != uint64(c.me) { // another rank's, which is perhaps being made anew
			continue
		}
		what := uint64(denied)
		for _, b := range c.lending.lent {
			off := addr - uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
			if size <= tuning.LentPiece && off <= uint64(len(b)) && size <= uint64(len(b))-off {
				copy(q.data(int(size)), b[off:])
				what = given
				break
			}
		}
		q.state.CompareAndSwap(state, state&^3|what)
		c.rank.RingRank(r)
	}
}

// request is what rank r asks for, nil if it has never asked for anything and make is not set.
func (c *Reach) request(r int, make bool) (*request, error) {
	if q := c.lending.requests[r]; q != nil {
		return q, nil
	}
	mem, err := c.rank.Share.Map(c.local.Request(r), RequestBytes, make)
	if mem == nil {
		return nil, err
	}
	q := (*request)(unsafe.Pointer(&mem[0]))
	if c.lending.requests == nil {
		c.lending.requests = map[int]*request{}
	}
	c.lending.requests[r] = q
	return q, nil
}
