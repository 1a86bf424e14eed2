package coll

import (
	"context"
	"slices"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// Collective is what the benchmark knows of one collective on elements of type T.
type Collective[T ccl.Number] struct {
	Name    string // as -op has it
	Kind    ccl.Kind
	Reduces bool // -o matters
	Rooted  bool // -r matters
	NoData  bool // -b, -e and -d do not matter
	Split   bool // the size is that of all ranks' parts together, as in nccl-tests

	// Factor is the share of the size that must pass this rank's link, whatever the
	// algorithm (nccl-tests, doc/PERFORMANCE.md). Algbw times the largest of all ranks is busbw.
	Factor func(Shape) float64

	// Send and Recv are how many elements this rank gives and gets, and Want what
	// it gets, in order. In place, the smaller buffer is part Rank of the larger.
	Send, Recv func(Shape) int
	Want       func(Shape) []Part

	Run   func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error
	Queue func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work
}

// All is the table. A new collective is one more entry.
func All[T ccl.Number]() []Collective[T] {
	return []Collective[T]{{
		Name: "allreduce", Kind: ccl.KindAllReduce, Reduces: true,
		Factor: func(s Shape) float64 { return 2 * s.others() },
		Send:   Shape.one, Recv: Shape.one,
		Want: func(s Shape) []Part { return []Part{{verify.Reduced, 0, s.Count}} },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.AllReduce(ctx, c, dst, src, op)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.AllReduce(dst, src, op)
		},
	}, {
		Name: "allgather", Kind: ccl.KindAllGather, Split: true,
		Factor: Shape.others,
		Send:   Shape.one, Recv: Shape.total,
		Want: func(s Shape) []Part { return s.every(0) },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.AllGather(ctx, c, dst, src)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.AllGather(dst, src)
		},
	}, {
		Name: "reducescatter", Kind: ccl.KindReduceScatter, Reduces: true, Split: true,
		Factor: Shape.others,
		Send:   Shape.total, Recv: Shape.one,
		Want: func(s Shape) []Part { return []Part{{verify.Reduced, s.Rank * s.Count, s.Count}} },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.ReduceScatter(ctx, c, dst, src, op)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.ReduceScatter(dst, src, op)
		},
	}, {
		Name: "broadcast", Kind: ccl.KindBroadcast, Rooted: true,
		Factor: Shape.whole,
		Send:   Shape.oneAtRoot, Recv: Shape.oneOffRoot,
		Want: func(s Shape) []Part { return s.offRoot(Part{s.Root, 0, s.Count}) },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.Broadcast(ctx, c, pick(s.isRoot(), src, dst), s.Root)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.Broadcast(pick(s.isRoot(), src, dst), s.Root)
		},
	}, {
		Name: "reduce", Kind: ccl.KindReduce, Reduces: true, Rooted: true,
		Factor: Shape.whole,
		Send:   Shape.one, Recv: Shape.oneAtRoot,
		Want: func(s Shape) []Part { return s.atRoot(Part{verify.Reduced, 0, s.Count}) },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.Reduce(ctx, c, dst, src, op, s.Root)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.Reduce(dst, src, op, s.Root)
		},
	}, {
		Name: "alltoall", Kind: ccl.KindAllToAll, Split: true,
		Factor: Shape.others,
		Send:   Shape.total, Recv: Shape.total,
		Want: func(s Shape) []Part { return s.every(s.Rank * s.Count) },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.AllToAll(ctx, c, dst, src)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.AllToAll(dst, src)
		},
	}, {
		Name: "alltoallv", Kind: ccl.KindAllToAllV, Split: true,
		Factor: Shape.sentAway,
		Send:   Shape.totalSent, Recv: Shape.totalReceived,
		Want: Shape.unevenParts,
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.AllToAllV(ctx, c, dst, s.received, src, s.sent)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.AllToAllV(dst, s.received, src, s.sent)
		},
	}, {
		Name: "gather", Kind: ccl.KindGather, Rooted: true, Split: true,
		Factor: Shape.others,
		Send:   Shape.one, Recv: Shape.totalAtRoot,
		Want: func(s Shape) []Part { return s.atRoot(s.every(0)...) },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.Gather(ctx, c, dst, src, s.Root)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.Gather(dst, src, s.Root)
		},
	}, {
		Name: "scatter", Kind: ccl.KindScatter, Rooted: true, Split: true,
		Factor: Shape.others,
		Send:   Shape.totalAtRoot, Recv: Shape.one,
		Want: func(s Shape) []Part { return []Part{{s.Root, s.Rank * s.Count, s.Count}} },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.Scatter(ctx, c, dst, src, s.Root)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.Scatter(dst, src, s.Root)
		},
	}, {
		Name: "sendrecv", Kind: ccl.KindSendRecv,
		Factor: Shape.whole,
		Send:   Shape.one, Recv: Shape.one,
		Want: func(s Shape) []Part { return []Part{{s.prev(), 0, s.Count}} },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.SendRecv(ctx, c, dst, s.prev(), src, s.next())
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.SendRecv(dst, s.prev(), src, s.next())
		},
	}, {
		Name: "barrier", Kind: ccl.KindBarrier, NoData: true,
		Factor: Shape.whole,
		Send:   Shape.none, Recv: Shape.none,
		Want: func(Shape) []Part { return nil },
		Run: func(ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, op ccl.Op) error {
			return ccl.Barrier(ctx, c)
		},
		Queue: func(q ccl.Queue, s Shape, dst, src ccl.Buf, op ccl.Op) ccl.Work {
			return q.Barrier()
		},
	}}
}

// Names are the collectives' names, in the table's order.
func Names() []string {
	return prose.Names(All[int8](), func(c Collective[int8]) string { return c.Name })
}

// Named is the collective of that name, which is one of Names.
func Named[T ccl.Number](name string) *Collective[T] {
	return &All[T]()[slices.Index(Names(), name)]
}

// Elements is the count column for size bytes of elements of elem bytes each, and
// the size it comes to, which may be less.
func (c *Collective[T]) Elements(size, elem, ranks int) (count, bytes int) {
	switch {
	case c.NoData:
		return 0, 0
	case c.Split:
		count = size / elem / ranks
		return count, count * ranks * elem
	}
	count = size / elem
	return count, count * elem
}

// Buffers cuts a rank's dst and src for one call out of memory. In place both lie
// in a, else src in a and dst in b.
func (c *Collective[T]) Buffers(s Shape, inPlace bool, a, b []T) (dst, src []T) {
	send, recv := c.Send(s), c.Recv(s)
	src, dst = a[:send:send], b[:recv:recv]
	if !inPlace || !s.InPlace() {
		return dst, src
	}
	part := s.Rank * s.Count
	switch dst = a[:recv:recv]; {
	case recv > send && send > 0:
		src = dst[part : part+send : part+send]
	case send > recv && recv > 0:
		dst = src[part : part+recv : part+recv]
	}
	return dst, src
}

// InPlace reports whether a call can be made in place: one whose ranks send other
// than they receive cannot.
func (s Shape) InPlace() bool { return s.matrix == nil }

// others is the share of a buffer that is not a rank's own.
func (s Shape) others() float64 { return float64(s.Ranks-1) / float64(s.Ranks) }

func (s Shape) whole() float64 { return 1 }

// sentAway is the share of alltoallv's size that this rank sends to others.
func (s Shape) sentAway() float64 {
	if s.Count == 0 {
		return s.others() // nothing is moved: the bandwidth is 0, and not unknown
	}
	return float64(s.totalSent()-s.sent[s.Rank]) / float64(s.total())
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func (s Shape) none() int        { return 0 }
func (s Shape) one() int         { return s.Count }
func (s Shape) oneAtRoot() int   { return pick(s.isRoot(), s.Count, 0) }
func (s Shape) oneOffRoot() int  { return pick(s.isRoot(), 0, s.Count) }
func (s Shape) totalAtRoot() int { return pick(s.isRoot(), s.total(), 0) }

func (s Shape) atRoot(p ...Part) []Part  { return pick(s.isRoot(), p, nil) }
func (s Shape) offRoot(p ...Part) []Part { return pick(s.isRoot(), nil, p) }

// unevenParts is what alltoallv brings: from rank p the part after those that p
// gives to the ranks before this one.
func (s Shape) unevenParts() []Part {
	parts := make([]Part, s.Ranks)
	for p := range parts {
		off := 0
		for r := range s.Rank {
			off += s.gives(p, r)
		}
		parts[p] = Part{From: p, Off: off, Len: s.received[p]}
	}
	return parts
}
