package mpi

import (
	"context"
	"math"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// limit is the greatest count that MPI's functions of old take. Beyond it they are called in their
// forms with MPI_Count, where the library has those, and where it has not (Open MPI up to 5, and
// the operators of 16-bit floats anywhere) collectives are made in pieces, and messages of a type that has all
// elements. Tests set it lower.
var limit = math.MaxInt32

// at is the memory at an address that is known to be good, of the heap or not Go's at all.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// move copies n bytes. The two may overlap.
func move(dst, src uintptr, n int) {
	if n > 0 && dst != src {
		copy(unsafe.Slice((*byte)(at(dst)), n), unsafe.Slice((*byte)(at(src)), n))
	}
}

// anyLarge agrees on whether AllToAllV goes in pieces: each rank knows only its own counts.
func (c *Comm) anyLarge(ctx context.Context, k *Call) (bool, error) {
	c.vote = [2]int32{}
	if op.Elements(k.DC) > limit || op.Elements(k.SC) > limit {
		c.vote[0] = 1
	}
	_, err := c.do(ctx, &Call{Kind: KindAllReduce, Type: TypeInt32, Op: Max, N: 1,
		Src: uintptr(unsafe.Pointer(&c.vote[0])), Dst: uintptr(unsafe.Pointer(&c.vote[1]))})
	return c.vote[1] != 0, err
}

// inPieces makes a call that is beyond the library's counts.
func (c *Comm) inPieces(ctx context.Context, k *Call) (Status, error) {
	switch k.Kind {
	case KindBcast, KindReduce, KindAllReduce, KindScan, KindExscan:
		return Status{}, c.vectorInPieces(ctx, k)
	}
	p := pieces{ctx: ctx, c: c, k: *k, size: uintptr(k.Type.Size())}
	p.dc, p.sc = k.DC, k.SC
	if p.dc == nil {
		p.dc = slices.Repeat([]int{k.N}, c.size)
	}
	if p.sc == nil {
		p.sc = p.dc
	}
	var err error
	if p.messages, err = c.private(ctx); err != nil {
		return Status{}, err
	}
	switch k.Kind {
	case KindReduceScatter, KindReduceScatterV:
		err = p.reduceScatter()
	case KindGather, KindGatherV:
		err = p.gather()
	case KindScatter, KindScatterV:
		err = p.scatter()
	case KindAllGather, KindAllGatherV:
		err = p.allGather()
	case KindAllToAll, KindAllToAllV:
		err = p.allToAll()
	}
	if e := p.messages.broken.Load(); e != nil {
		c.broken.CompareAndSwap(nil, e)
	}
	return Status{}, err
}

func (c *Comm) vectorInPieces(ctx context.Context, k *Call) error {
	for i := 0; i < k.N; i += limit {
		piece := k.piece(i, min(limit, k.N-i))
		if _, err := c.do(ctx, &piece); err != nil {
			return err
		}
	}
	return nil
}

// pieces is a call that is made of calls with fewer elements each.
type pieces struct {
	ctx      context.Context
	c        *Comm
	messages *Comm // for those between two ranks
	k        Call
	size     uintptr // of an element
	dc, sc   []int
}

// block is the address of rank r's block in a buffer of blocks.
func (p *pieces) block(base uintptr, counts []int, r int) uintptr {
	return base + uintptr(op.Elements(counts[:r]))*p.size
}

func (p *pieces) do(k Call) error {
	if k.N == 0 && k.M == 0 {
		return nil
	}
	k.Type, k.Op = p.k.Type, p.k.Op
	c := p.c
	if k.Kind.message() {
		c = p.messages
	}
	_, err := c.do(p.ctx, &k)
	return err
}

func (p *pieces) send(to int, src uintptr, n int) error {
	return p.do(Call{Kind: KindSend, To: to, Tag: ownTag, Src: src, N: n})
}

func (p *pieces) recv(from int, dst uintptr, n int) error {
	return p.do(Call{Kind: KindRecv, Root: from, Tag: ownTag, Dst: dst, N: n})
}

// own copies this rank's own block, unless it is in place.
func (p *pieces) own(dst, src uintptr, n int) {
	if !p.k.InPlace {
		move(dst, src, n*int(p.size))
	}
}

// scratch is room for n elements; of int64, so that it is aligned.
func (p *pieces) scratch(n int) (addr uintptr, memory []int64) {
	memory = make([]int64, (uintptr(n)*p.size+7)/8+1)
	return uintptr(unsafe.Pointer(unsafe.SliceData(memory))), memory
}

// reduceScatter reduces each block to the rank that gets it. In place the result is to lie where
// blocks that others still need begin: it waits outside.
func (p *pieces) reduceScatter() error {
	mine, src, dst := p.dc[p.c.rank], p.k.Src, p.k.Dst
	if p.k.InPlace {
		src = p.k.Dst
		var memory []int64
		dst, memory = p.scratch(mine)
		defer func() { move(p.k.Dst, uintptr(unsafe.Pointer(unsafe.SliceData(memory))), mine*int(p.size)) }()
	}
	for r, n := range p.dc {
		if err := p.do(Call{Kind: KindReduce, Root: r, Dst: dst, Src: p.block(src, p.dc, r), N: n}); err != nil {
			return err
		}
	}
	return nil
}

func (p *pieces) gather() error {
	if p.c.rank != p.k.Root {
		return p.send(p.k.Root, p.k.Src, p.k.N)
	}
	for r, n := range p.dc {
		block := p.block(p.k.Dst, p.dc, r)
		if r == p.c.rank {
			p.own(block, p.k.Src, n)
		} else if err := p.recv(r, block, n); err != nil {
			return err
		}
	}
	return nil
}

func (p *pieces) scatter() error {
	if p.c.rank != p.k.Root {
		return p.recv(p.k.Root, p.k.Dst, p.k.N)
	}
	for r, n := range p.dc {
		block := p.block(p.k.Src, p.dc, r)
		if r == p.c.rank {
			p.own(p.k.Dst, block, n)
		} else if err := p.send(r, block, n); err != nil {
			return err
		}
	}
	return nil
}

func (p *pieces) allGather() error {
	p.own(p.block(p.k.Dst, p.dc, p.c.rank), p.k.Src, p.dc[p.c.rank])
	for r, n := range p.dc {
		if err := p.do(Call{Kind: KindBcast, Root: r, Dst: p.block(p.k.Dst, p.dc, r), N: n}); err != nil {
			return err
		}
	}
	return nil
}

// allToAll exchanges with the rank s places on while receiving from the one s places back.
func (p *pieces) allToAll() error {
	n, me, src, sc := p.c.size, p.c.rank, p.k.Src, p.sc
	if p.k.InPlace {
		var memory []int64
		src, memory = p.scratch(op.Elements(p.dc))
		move(src, p.k.Dst, op.Elements(p.dc)*int(p.size))
		defer func() { _ = memory[0] }() // alive until then
		sc = p.dc
	}
	move(p.block(p.k.Dst, p.dc, me), p.block(src, sc, me), p.dc[me]*int(p.size))
	for s := 1; s < n; s++ {
		to, from := (me+s)%n, (me-s+n)%n
		if err := p.do(Call{Kind: KindSendRecv, To: to, Root: from, Tag: ownTag,
			Dst: p.block(p.k.Dst, p.dc, from), N: p.dc[from],
			Src: p.block(src, sc, to), M: sc[to]}); err != nil {
			return err
		}
	}
	return nil
}
