package mpi

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Split partitions c by color, ordered by key and then by old rank. A negative color gets a nil
// Comm. It is collective over c.
func (c *Comm) Split(color, key int) (*Comm, error) { return c.derive("Split", commSplit, color, key) }

// SplitNode partitions c into the ranks that can share memory, those of one host, ordered by key
// and then by old rank. It is collective over c.
func (c *Comm) SplitNode(key int) (*Comm, error) { return c.derive("SplitNode", commSplitNode, 0, key) }

// Dup is a communicator of the same ranks whose messages do not meet those of c. It is collective over c.
func (c *Comm) Dup() (*Comm, error) { return c.dup(context.Background()) }

func (c *Comm) dup(ctx context.Context) (*Comm, error) {
	st, err := c.do(ctx, &Call{Kind: kindDup})
	if err != nil {
		return nil, err
	}
	return &Comm{handle: uintptr(st.Count), rank: c.rank, size: c.size}, nil
}

// private is a duplicate of c for messages of this package's own, which no receive of the program's may take.
// The first call is collective over c.
func (c *Comm) private(ctx context.Context) (p *Comm, err error) {
	if c.hidden == nil {
		if p, err = c.dup(ctx); err != nil {
			return nil, err
		}
		c.hidden = p
	}
	return c.hidden, nil
}

// What make does. The values are those of gmpi.h.
const (
	commSplit = iota
	commSplitNode
	commFree
)

// member is what a rank tells the others of a new communicator. MPI takes ints of C for color and key, so
// each rank computes dense ones from what all have said.
type member struct{ color, key, world, rank int }

// members are those of all ranks of c.
func (c *Comm) members(color, key int) ([]member, error) {
	all := make([]int64, 3*c.size)
	if err := AllGather(context.Background(), c, all, []int64{int64(color), int64(key), int64(world.rank)}); err != nil {
		return nil, err
	}
	list := make([]member, c.size)
	for r := range list {
		list[r] = member{int(all[3*r]), int(all[3*r+1]), int(all[3*r+2]), r}
	}
	return list, nil
}

// place is the lowest rank of those with this rank's color, this rank's place among those, and how many there are.
func (c *Comm) place(all []member) (color, key, size int) {
	mine := all[c.rank]
	color = -1
	for _, m := range all {
		if m.color != mine.color {
			continue
		}
		if size++; color < 0 {
			color = m.rank
		}
		if m.key < mine.key || m.key == mine.key && m.rank < mine.rank {
			key++
		}
	}
	if mine.color < 0 {
		color = -1
	}
	return color, key, size
}

func (c *Comm) derive(op string, what, color, key int) (*Comm, error) {
	if err := c.ready(op); err != nil {
		return nil, err
	}
	all, err := c.members(color, key)
	if err != nil {
		return nil, err
	}
	color, key, size := c.place(all)
	var handle uintptr
	err = c.collectively(all, func() (err error) {
		handle, err = c.make(op, what, color, key)
		return err
	})
	if err != nil || handle == 0 {
		return nil, err
	}
	made := &Comm{handle: handle}
	if err := made.identify(); err != nil {
		return nil, err
	}
	if what == commSplit && (made.rank != key || made.size != size) {
		return nil, failed(op, ErrComm, "the library made this rank %d of %d, but it should be %d of %d", made.rank,
			made.size, key, size)
	}
	return made, nil
}

// Free frees a communicator that Split, SplitNode or Dup made. It is collective over c.
func (c *Comm) Free() error {
	if err := c.ready("Free"); err != nil {
		return err
	}
	if c == &world || c == &self {
		return failed("Free", ErrComm, "World and Self cannot be freed")
	}
	var all []member
	if process.level != Multiple {
		var err error
		if all, err = c.members(0, 0); err != nil {
			return err
		}
	}
	err := c.collectively(all, func() error {
		if c.hidden != nil {
			if _, err := c.hidden.make("Free", commFree, 0, 0); err != nil {
				return err
			}
			c.hidden = nil
		}
		_, err := c.make("Free", commFree, 0, 0)
		return err
	})
	if err == nil {
		c.handle = 0
	}
	return err
}

// turn makes calls take turns where the library cannot be called from two threads at a time.
var turn sync.Mutex

func enter() {
	if process.level != Multiple {
		turn.Lock()
	}
}

func leave() {
	if process.level != Multiple {
		turn.Unlock()
	}
}

// creating is held by the one goroutine that may block inside MPI although calls take turns.
var creating sync.Mutex

// collectively calls make, which MPI has in a blocking form only, on all ranks. Where calls take turns a rank that
// waited in there for another would keep all other calls of its process from MPI, among them those that the
// other rank waits for. So none goes in before all are here and hold creating, which they take in the order of
// their ranks in World: two communicators that are made at the same time cannot wait for each other.
func (c *Comm) collectively(all []member, make func() error) error {
	if process.level == Multiple || c.size == 1 {
		enter()
		defer leave()
		return make()
	}
	ctx := context.Background()
	p, err := c.private(ctx)
	if err != nil {
		return err
	}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b member) int { return cmp.Compare(a.world, b.world) })
	at := slices.IndexFunc(order, func(m member) bool { return m.rank == c.rank })
	if at > 0 {
		if _, err := p.do(ctx, &Call{Kind: KindRecv, Type: TypeInt8, Root: order[at-1].rank}); err != nil {
			return err
		}
	}
	creating.Lock()
	defer creating.Unlock()
	if at < len(order)-1 {
		if _, err := p.do(ctx, &Call{Kind: KindSend, Type: TypeInt8, To: order[at+1].rank}); err != nil {
			return err
		}
	}
	if _, err := p.do(ctx, &Call{Kind: KindBarrier}); err != nil {
		return err
	}
	enter()
	defer leave()
	return make()
}
