package offload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// Column is elements on a Disk: one array of a unit, or a part of one. The zero Column is none. It is a
// ckpt.Stored.
type Column struct {
	d       *Disk
	t       ccl.Type
	at, end int64 // bytes; end: of the whole array
	n       int
}

// Lay adds n elements to what the Disk has.
func (d *Disk) Lay(t ccl.Type, n int) Column {
	c := Column{d: d, t: t, at: d.laid.size, n: n}
	c.end = c.at + int64(n)*int64(t.Size())
	d.laid = laid{blocks(c.end), max(d.laid.most, n)}
	return c
}

// Type of the elements.
func (c Column) Type() ccl.Type { return c.t }

// Is reports whether there is one.
func (c Column) Is() bool { return c.d != nil }

// Len is the number of elements.
func (c Column) Len() int { return c.n }

// Part is elements lo to hi.
func (c Column) Part(lo, hi int) Column {
	c.at, c.n = c.at+int64(lo)*int64(c.t.Size()), hi-lo
	return c
}

// bytes is the memory of b, if that has the elements of c.
func (c Column) bytes(b ccl.Buf) ([]byte, error) {
	s, err := raw.Bytes(b)
	if err == nil && (b.Type() != c.t || b.Len() != c.n || c.d == nil) {
		err = fmt.Errorf("offload: %d %v elements in memory for %d %v on the disk", b.Len(), b.Type(), c.n, c.t)
	}
	return s, err
}

// move begins a read or a write of all of c.
func (c Column) move(b ccl.Buf, write bool) *Op {
	s, err := c.bytes(b)
	if err != nil {
		op := &Op{err: err, done: make(chan struct{})}
		close(op.done)
		return op
	}
	return c.d.issue(&Op{b: s, at: c.at, end: c.end, write: write})
}

// Read begins to read c into dst.
func (c Column) Read(dst ccl.Buf) *Op { return c.move(dst, false) }

// Write begins to write src to c.
func (c Column) Write(src ccl.Buf) *Op { return c.move(src, true) }

// Wait waits for an operation on the Disk.
func (d *Disk) Wait(ctx context.Context, op *Op) error { return d.wait(ctx, op) }

// ReadAt reads bytes of c, as io.ReaderAt says.
func (c Column) ReadAt(b []byte, off int64) (int, error) { return c.piece(b, off, false) }

// WriteAt writes bytes of c, as io.WriterAt says.
func (c Column) WriteAt(b []byte, off int64) (int, error) { return c.piece(b, off, true) }

func (c Column) piece(b []byte, off int64, write bool) (int, error) {
	switch size := int64(c.n) * int64(c.t.Size()); {
	case c.d == nil || off < 0:
		return 0, errors.New("offload: no such part of a Column")
	case off > size || int64(len(b)) > size-off:
		return 0, io.ErrUnexpectedEOF
	}
	defer c.d.watch()() // a checkpoint has no context for this
	err := c.d.wait(context.Background(), c.d.issue(&Op{b: b, at: c.at + off, end: c.end, write: write}))
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Array is an array that a Stretch goes over: on the Disk, or in memory where Of is none.
type Array struct {
	Of      Column
	Mem     ccl.Buf
	In, Out bool // of those on the Disk: to be read before, to be written after
}

// Len is the number of elements.
func (a Array) Len() int { return max(a.Of.n, a.Mem.Len()) }

// Part is elements lo to hi.
func (a Array) Part(lo, hi int) Array {
	if a.Of.d != nil {
		a.Of = a.Of.Part(lo, hi)
	} else {
		a.Mem = a.Mem.From(lo, hi)
	}
	return a
}

// Stretch is N elements of several arrays.
type Stretch struct {
	Unit   int // for the caller
	N      int
	Arrays []Array
}

// room is memory for a bucket of an array, by its place among the others.
type room struct {
	slot, place int
	t           ccl.Type
}

// bucket is a part of a Stretch that is read.
type bucket struct {
	*Stretch
	lo, hi int
	of     []ccl.Buf
	reads  []*Op
}

// Each goes over what next returns, until that is nil or an error, a bucket at a time: while do has
// elements lo to hi of a Stretch, the bucket before is written and the one behind is read. It returns when
// all but the last writes are done; what is read later sees these, and an error of them ends the Comm. An
// error of do ends it.
func (d *Disk) Each(ctx context.Context, next func() (*Stretch, error),
	do func(s *Stretch, lo, hi int, of []ccl.Buf) error) error {
	var last *bucket
	slot := 0
	for {
		s, err := next()
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		for lo := 0; lo < s.N; lo += d.o.Bucket {
			now := d.begin(s, lo, slot)
			slot = 1 - slot
			if err := d.finish(ctx, last, do); err != nil {
				return err
			}
			last = now
		}
	}
	if err := d.finish(ctx, last, do); err != nil {
		return err
	}
	return d.Err()
}

// begin reads a bucket into the memory of a slot. What was there before has been issued to be written,
// and is so before anything is read there: the queue keeps the order.
func (d *Disk) begin(s *Stretch, lo, slot int) *bucket {
	b := &bucket{Stretch: s, lo: lo, hi: min(lo+d.o.Bucket, s.N)}
	for k, a := range s.Arrays {
		if a.Of.d == nil {
			b.of = append(b.of, a.Mem.From(lo, b.hi))
			continue
		}
		mem := d.memory(room{slot, k, a.Of.t}).From(0, b.hi-lo)
		b.of = append(b.of, mem)
		if a.In {
			b.reads = append(b.reads, a.Of.Part(lo, b.hi).Read(mem))
		}
	}
	return b
}

// finish does what is to be done with a bucket, and begins to write it.
func (d *Disk) finish(ctx context.Context, b *bucket,
	do func(s *Stretch, lo, hi int, of []ccl.Buf) error) error {
	if b == nil {
		return nil
	}
	if len(b.reads) == 0 { // no read says that what was in this memory before is written
		if err := d.Flush(ctx); err != nil {
			return err
		}
	}
	for _, op := range b.reads {
		if err := d.wait(ctx, op); err != nil {
			return err
		}
	}
	if err := do(b.Stretch, b.lo, b.hi, b.of); err != nil {
		return err
	}
	for k, a := range b.Arrays {
		if a.Of.d != nil && a.Out {
			a.Of.Part(b.lo, b.hi).Write(b.of[k])
		}
	}
	return nil
}

// Memory is memory of a bucket for what is done with one, beside the arrays.
func (d *Disk) Memory(t ccl.Type) ccl.Buf { return d.memory(room{place: -1, t: t}) }

// memory is that of a room.
func (d *Disk) memory(r room) ccl.Buf {
	b, ok := d.rooms[r]
	if !ok {
		b = bufOf(raw.Make(r.t, min(d.o.Bucket, d.laid.most)))
		d.rooms[r] = b
	}
	return b
}

// bufOf is a slice of one of the types that zero trains.
func bufOf(s any) ccl.Buf {
	switch s := s.(type) {
	case []float32:
		return ccl.BufOf(s)
	case []float64:
		return ccl.BufOf(s)
	case []ccl.BFloat16:
		return ccl.BufOf(s)
	case []ccl.Float16:
		return ccl.BufOf(s)
	}
	return ccl.Buf{}
}
