// Package harness runs the benchmark on the ranks of this process.
package harness

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// session is the benchmark as one rank runs it. All ranks make the same calls.
type session struct {
	ctx  context.Context
	c    *ccl.Comm
	o    *option.Options
	out  *output // nil but on rank 0
	seed uint64  // changes with every checked call, alike on all ranks

	a, b    []byte // the users' buffers, each as large as the largest size
	summary report.Summary
}

// runs has the benchmark for each element type.
var runs = map[ccl.Type]func(s *session, name string) error{
	ccl.TypeInt8:       collective[int8],
	ccl.TypeUint8:      collective[uint8],
	ccl.TypeInt16:      collective[int16],
	ccl.TypeUint16:     collective[uint16],
	ccl.TypeInt32:      collective[int32],
	ccl.TypeUint32:     collective[uint32],
	ccl.TypeInt64:      collective[int64],
	ccl.TypeUint64:     collective[uint64],
	ccl.TypeFloat16:    collective[ccl.Float16],
	ccl.TypeBFloat16:   collective[ccl.BFloat16],
	ccl.TypeFloat32:    collective[float32],
	ccl.TypeFloat64:    collective[float64],
	ccl.TypeFloat8E4M3: collective[ccl.Float8E4M3],
	ccl.TypeFloat8E5M2: collective[ccl.Float8E5M2],
}

// run measures all that the options ask for.
func (s *session) run() error {
	largest := 0
	for _, n := range s.o.Sizes() {
		largest = max(largest, n)
	}
	s.a, s.b = alloc(largest), alloc(largest)
	for _, name := range s.o.Collectives {
		if err := s.out.head(name, len(s.o.Collectives) > 1); err != nil {
			return err
		}
		for _, t := range s.o.Types {
			if err := runs[t](s, name); err != nil {
				return err
			}
			if name == "barrier" {
				break // it has no type
			}
		}
	}
	return nil
}

// alloc makes n bytes, aligned for every type.
func alloc(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// as reads memory as elements.
func as[T ccl.Number](b []byte) []T {
	var z T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

// bytesOf is as, back.
func bytesOf[T ccl.Number](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

// collective measures one collective on elements of type T, with every operator
// and root that is asked for and has a meaning.
func collective[T ccl.Number](s *session, name string) error {
	for _, c := range coll.All[T]() {
		if c.Name != name {
			continue
		}
		ops, roots := []ccl.Op{ccl.Sum}, []int{-1}
		if c.Reduces {
			ops = s.o.Ops
		}
		switch {
		case c.Rooted && s.o.Root == option.AllRoots:
			roots = roots[:0]
			for r := range s.c.Size() {
				roots = append(roots, r)
			}
		case c.Rooted:
			roots[0] = s.o.Root
		}
		for _, op := range ops {
			if err := s.c.Supports(c.Kind, ccl.TypeOf[T](), op); err != nil {
				if err := s.out.skip(title(&c, op), err); err != nil {
					return err
				}
				continue
			}
			for _, root := range roots {
				if err := curve(s, &c, op, root); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// title names a test: allreduce float sum.
func title[T ccl.Number](c *coll.Collective[T], op ccl.Op) string {
	switch {
	case c.NoData:
		return c.Name
	case c.Reduces:
		return fmt.Sprintf("%s %v %v", c.Name, ccl.TypeOf[T](), op)
	}
	return fmt.Sprintf("%s %v", c.Name, ccl.TypeOf[T]())
}

// curve measures one line for each size. Sizes that come to the same number of
// elements are one.
func curve[T ccl.Number](s *session, c *coll.Collective[T], op ccl.Op, root int) error {
	last := -1
	for _, size := range s.o.Sizes() {
		count, bytes := c.Elements(size, ccl.TypeOf[T]().Size(), s.c.Size())
		if count == last {
			continue
		}
		last = count
		s.out.progress("%s: %s", title(c, op), option.FormatSize(bytes))
		row, err := line(s, c, op, root, count, bytes)
		if err != nil {
			return err
		}
		s.summary.Add(row)
		if err := s.out.row(row); err != nil {
			return err
		}
	}
	return nil
}
