// Command reduces has the engine mpi reduce elements of every type by every operator, by every call
// that does, alone and in a group, and compares with Go's arithmetic. Integers wrap around, and
// their order depends on their sign.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "mpi"})
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	for _, check := range []func(context.Context, *ccl.Comm) error{
		check[int8], check[uint8], check[int16], check[uint16], check[int32], check[uint32], check[int64], check[uint64],
		check[float32], check[float64],
	} {
		if err := check(ctx, c); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		fmt.Printf("reduces: library %s\n", c.Library())
	}
	fmt.Printf("reduces: rank %d of %d, %s: ok\n", c.Rank(), c.Size(), c.Backend())
	return nil
}

type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// of is element i of a rank: small numbers, -1, and those whose highest bit is set.
func of[T number](rank, i int) T {
	var zero T
	top := uint64(1) << 63
	switch any(zero).(type) {
	case int8, uint8:
		top = 1 << 7
	case int16, uint16:
		top = 1 << 15
	case int32, uint32:
		top = 1 << 31
	case float32, float64:
		top = 1 << 10
	}
	return [...]T{T(top), 1, 0, T(top - 1), 2, T(top / 2), 3}[(i*(rank+1)+rank)%7]
}

func check[T number](ctx context.Context, c *ccl.Comm) error {
	n, me := c.Size(), c.Rank()
	for _, o := range []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max} {
		for _, count := range []int{1, 3, 64, 1000} {
			want := make([]T, n*count)
			for i := range want {
				want[i] = of[T](0, i)
				for r := 1; r < n; r++ {
					x := of[T](r, i)
					switch o {
					case ccl.Sum:
						want[i] += x
					case ccl.Prod:
						want[i] *= x
					case ccl.Min:
						want[i] = min(want[i], x)
					case ccl.Max:
						want[i] = max(want[i], x)
					}
				}
			}
			src, dst := make([]T, n*count), make([]T, n*count)
			begin := func() {
				for i := range src {
					src[i], dst[i] = of[T](me, i), 0
				}
			}
			counts := make([]int, n)
			for r := range counts {
				counts[r] = count
			}
			mine := want[me*count:][:count]
			for _, call := range []struct {
				what      string
				make      func() error
				got, want []T
			}{
				{"AllReduce", func() error { return ccl.AllReduce(ctx, c, dst, src, o) }, dst, want},
				{"AllReduce in place", func() error { return ccl.AllReduce(ctx, c, src, src, o) }, src, want},
				{"Reduce", func() error { return ccl.Reduce(ctx, c, dst, src, o, n-1) }, dst[:len(dst)*((me+1)/n)], want},
				{"ReduceScatter", func() error { return ccl.ReduceScatter(ctx, c, dst[:count], src, o) }, dst[:count], mine},
				{"ReduceScatterV", func() error { return ccl.ReduceScatterV(ctx, c, dst[:count], src, counts, o) }, dst[:count],
					mine},
				{"a group", func() error {
					return c.On(nil).Group(func(g ccl.Queue) error {
						g.AllReduce(ccl.BufOf(src[:count]), ccl.InPlace(), o)
						g.AllReduce(ccl.BufOf(src[count:]), ccl.InPlace(), o)
						return nil
					}).Wait(ctx)
				}, src, want},
			} {
				begin()
				if err := call.make(); err != nil {
					return err
				}
				for i, x := range call.got {
					if x != call.want[i] {
						return fmt.Errorf("%s of %d %T by %v: element %d is %v, not %v", call.what, count, x, o, i, x, call.want[i])
					}
				}
			}
		}
	}
	return nil
}
