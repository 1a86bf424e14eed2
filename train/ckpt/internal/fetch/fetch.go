// Package fetch reads objects of other ranks' Stores, over a Comm.
package fetch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/store"
)

// Block is how much of an object one rank sends to another at once. ckpt reads its parts, and
// compares checksums, in blocks of this size.
const Block = 4 << 20

var (
	errEnded = errors.New("the rank has said that it reads no more")
	errLeft  = errors.New("the rank has left the exchange")
)

// ask is a read of an object of another rank.
type ask struct {
	holder, object int
	at             int64
	b              []byte
	done           chan error
}

// Session is an exchange that is under way, on one rank.
type Session struct {
	c     *ccl.Comm
	disk  Reader // serves the other ranks
	names []string
	asks  chan *ask
	ended chan struct{} // closed: this rank reads no more
	once  sync.Once
	left  chan struct{} // closed with the loop
	err   error         // of the loop
}

// Serve runs work, in which this rank may read what the others have of the named objects, until no
// rank reads any more: meanwhile each rank serves the others from its Store. It is collective over c,
// on which no other call may be made meanwhile. names are in order, and the same on all ranks. Work
// waits for no other rank, unless it has called End before.
func Serve(ctx context.Context, c *ccl.Comm, s store.Store, names []string, work func(*Session) error) (err error) {
	x := &Session{c: c, disk: Reader{Store: s, Rank: c.Rank()}, names: names, asks: make(chan *ask),
		ended: make(chan struct{}), left: make(chan struct{}), err: errLeft}
	go func() {
		defer close(x.left)
		defer x.disk.Close()
		x.err = x.loop(ctx)
	}()
	defer func() {
		x.End()
		<-x.left
		if err == nil {
			err = x.err
		}
	}()
	return work(x)
}

// End says that this rank reads no more.
func (x *Session) End() { x.once.Do(func() { close(x.ended) }) }

// Read fills b from byte at of the object on, as its holder has it, which is another rank.
func (x *Session) Read(ctx context.Context, holder int, name string, b []byte, at int64) error {
	object, ok := slices.BinarySearch(x.names, name)
	if !ok {
		return errors.New(name + " is not among what the ranks exchange")
	}
	for len(b) > 0 {
		q := &ask{holder, object, at, b[:min(len(b), Block)], make(chan error, 1)}
		select {
		case x.asks <- q:
		case <-x.ended:
			return errEnded
		case <-x.left:
			return x.err
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-q.done:
			if err != nil {
				return err
			}
		case <-x.left:
			return x.err
		}
		b, at = b[len(q.b):], at+int64(len(q.b))
	}
	return nil
}

const (
	headLen = 4  // numbers that a rank tells of its ask: the holder, the object, where, and how many bytes
	nothing = -1 // in the place of the holder: this rank reads no more
)

// loop takes part in rounds until no rank reads any more. In a round each rank tells what it asks
// for. Of several ranks that ask one holder one is served, so that a rank sends and receives one
// block at a time. What is sent in a round follows from what all ranks were told in it.
func (x *Session) loop(ctx context.Context) error {
	heads := make([]int64, headLen*x.c.Size())
	var pending *ask
	for round := 0; ; round++ {
		if pending == nil {
			select {
			case pending = <-x.asks:
			case <-x.ended:
			}
		}
		head := []int64{nothing, 0, 0, 0}
		if pending != nil {
			head = []int64{int64(pending.holder), int64(pending.object), pending.at, int64(len(pending.b))}
		}
		if err := ccl.AllGather(ctx, x.c, heads, head); err != nil {
			return err
		}
		asker := served(heads, round)
		if len(asker) == 0 {
			return nil
		}
		mine := pending
		if mine != nil && asker[mine.holder] != x.c.Rank() {
			mine = nil // its turn comes in a later round
		}
		bad, err := x.answer(ctx, heads, asker, mine)
		if err != nil {
			return err
		}
		if mine != nil {
			mine.done <- bad
			pending = nil
		}
	}
}

// served is which rank each holder serves in a round, by the heads of all ranks. Ranks take turns.
func served(heads []int64, round int) map[int]int {
	size := len(heads) / headLen
	asker := map[int]int{}
	for k := range size {
		r := (k + round) % size
		holder := int(heads[r*headLen])
		if _, busy := asker[holder]; holder != nothing && !busy {
			asker[holder] = r
		}
	}
	return asker
}

// answer moves the blocks of a round. bad is why the holder could not read what mine asks for.
func (x *Session) answer(ctx context.Context, heads []int64, asker map[int]int, mine *ask) (bad, err error) {
	in, out := make([]int, x.c.Size()), make([]int, x.c.Size())
	var get, send []byte
	text := ""
	if to, serves := asker[x.c.Rank()]; serves {
		h := heads[to*headLen:]
		out[to] = int(h[3])
		send = x.disk.room(out[to])
		if failed := x.disk.Read(ctx, x.names[h[1]], send, h[2]); failed != nil {
			text = failed.Error()
		}
	}
	if mine != nil {
		get = mine.b
		in[mine.holder] = len(get)
	}
	most := []int{len(text)}
	if err := ccl.AllReduce(ctx, x.c, most, most, ccl.Max); err != nil {
		return nil, err
	}
	if most[0] > 0 {
		texts, err := ccl.AllGatherValues(ctx, x.c, text)
		if err != nil {
			return nil, err
		}
		if mine != nil && texts[mine.holder] != "" {
			bad = errors.New(texts[mine.holder])
		}
	}
	return bad, ccl.AllToAllV(ctx, x.c, get, in, send, out)
}
