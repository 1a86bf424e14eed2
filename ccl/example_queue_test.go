package ccl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Calls are issued, then waited for.
func ExampleQueue() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []float32{1, 2}
		w := c.On(nil).AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum)
		// ... compute something else meanwhile ...
		err := w.Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [2 4]
}

func ExampleQueue_AllReduce() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		q := c.On(nil)
		a, b := []int{1}, []int{c.Rank()}
		q.AllReduce(ccl.BufOf(a), ccl.BufOf(a), ccl.Sum)
		err := q.AllReduce(ccl.BufOf(b), ccl.BufOf(b), ccl.Max).Wait(ctx) // the last of them is enough
		if c.Rank() == 0 {
			fmt.Println(a, b)
		}
		return err
	})
	// Output: [2] [1]
}

func ExampleQueue_Reduce() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{3}
		err := c.On(nil).Reduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Prod, 1).Wait(ctx)
		if c.Rank() == 1 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [9]
}

func ExampleQueue_ReduceScatter() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		src, dst := []int{1, 2}, make([]int, 1)
		got[c.Rank()] = dst
		return c.On(nil).ReduceScatter(ccl.BufOf(dst), ccl.BufOf(src), ccl.Sum).Wait(ctx)
	})
	fmt.Println(got)
	// Output: [[2] [4]]
}

func ExampleQueue_ReduceScatterV() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		counts := []int{2, 1}
		src, dst := []int{1, 2, 3}, make([]int, counts[c.Rank()])
		got[c.Rank()] = dst
		return c.On(nil).ReduceScatterV(ccl.BufOf(dst), ccl.BufOf(src), counts, ccl.Sum).Wait(ctx)
	})
	fmt.Println(got)
	// Output: [[2 4] [6]]
}

func ExampleQueue_Broadcast() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{c.Rank() * 5}
		err := c.On(nil).Broadcast(ccl.BufOf(x), 1).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [5]
}

func ExampleQueue_AllGather() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		dst := make([]int, 2)
		err := c.On(nil).AllGather(ccl.BufOf(dst), ccl.BufOf([]int{c.Rank() + 1})).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [1 2]
}

func ExampleQueue_AllGatherV() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		counts := []int{1, 2}
		src, dst := []int{7, 8}[:counts[c.Rank()]], make([]int, 3)
		err := c.On(nil).AllGatherV(ccl.BufOf(dst), counts, ccl.BufOf(src)).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [7 7 8]
}

func ExampleQueue_Gather() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		dst := make([]int, 2)
		err := c.On(nil).Gather(ccl.BufOf(dst), ccl.BufOf([]int{c.Rank() + 1}), 1).Wait(ctx)
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [1 2]
}

func ExampleQueue_GatherV() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		counts := []int{0, 2}
		src, dst := []int{4, 5}[:counts[c.Rank()]], make([]int, 2)
		err := c.On(nil).GatherV(ccl.BufOf(dst), counts, ccl.BufOf(src), 0).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [4 5]
}

func ExampleQueue_Scatter() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		src, dst := []int{6, 7}, make([]int, 1)
		got[c.Rank()] = dst
		return c.On(nil).Scatter(ccl.BufOf(dst), ccl.BufOf(src), 0).Wait(ctx)
	})
	fmt.Println(got)
	// Output: [[6] [7]]
}

func ExampleQueue_ScatterV() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		counts := []int{1, 2}
		src, dst := []int{6, 7, 8}, make([]int, counts[c.Rank()])
		got[c.Rank()] = dst
		return c.On(nil).ScatterV(ccl.BufOf(dst), ccl.BufOf(src), counts, 0).Wait(ctx)
	})
	fmt.Println(got)
	// Output: [[6] [7 8]]
}

func ExampleQueue_AllToAll() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		src, dst := []int{10 * c.Rank(), 10*c.Rank() + 1}, make([]int, 2)
		err := c.On(nil).AllToAll(ccl.BufOf(dst), ccl.BufOf(src)).Wait(ctx)
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [1 11]
}

func ExampleQueue_AllToAllV() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		sc := [][]int{{0, 2}, {1, 0}}[c.Rank()]
		dc := [][]int{{0, 1}, {2, 0}}[c.Rank()]
		src := [][]int{{1, 2}, {3}}[c.Rank()]
		dst := make([]int, dc[0]+dc[1])
		err := c.On(nil).AllToAllV(ccl.BufOf(dst), dc, ccl.BufOf(src), sc).Wait(ctx)
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [1 2]
}

func ExampleQueue_Send() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{42}
		if c.Rank() == 0 {
			return c.On(nil).Send(ccl.BufOf(x), 1).Wait(ctx)
		}
		x[0] = 0
		err := ccl.Recv(ctx, c, x, 0)
		fmt.Println(x)
		return err
	})
	// Output: [42]
}

func ExampleQueue_Recv() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{42}
		if c.Rank() == 0 {
			return ccl.Send(ctx, c, x, 1)
		}
		x[0] = 0
		err := c.On(nil).Recv(ccl.BufOf(x), 0).Wait(ctx)
		fmt.Println(x)
		return err
	})
	// Output: [42]
}

func ExampleQueue_SendRecv() {
	ctx := context.Background()
	got := make([]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		other := 1 - c.Rank()
		src, dst := []int{c.Rank() + 5}, make([]int, 1)
		err := c.On(nil).SendRecv(ccl.BufOf(dst), other, ccl.BufOf(src), other).Wait(ctx)
		got[c.Rank()] = dst[0]
		return err
	})
	fmt.Println(got)
	// Output: [6 5]
}

func ExampleQueue_Barrier() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		err := c.On(nil).Barrier().Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println("all are here:", err)
		}
		return err
	})
	// Output: all are here: <nil>
}

// In a group, a send and the receive that crosses it do not block each other.
func ExampleQueue_Group() {
	ctx := context.Background()
	got := make([]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		other := 1 - c.Rank()
		mine, theirs := []int{c.Rank() + 1}, make([]int, 1)
		err := c.On(nil).Group(func(g ccl.Queue) error {
			g.Send(ccl.BufOf(mine), other)
			g.Recv(ccl.BufOf(theirs), other)
			return nil
		}).Wait(ctx)
		got[c.Rank()] = theirs[0]
		return err
	})
	fmt.Println(got)
	// Output: [2 1]
}

func ExampleComm_On() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		s := ccl.NewHostStream()
		defer s.Close()
		x := []int{1}
		c.On(s).AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum)
		double := s.Do(func() error { x[0] *= 2; return nil }) // after the call
		err := double.Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [4]
}

func ExampleWork() {
	var w ccl.Work // the zero Work is complete
	fmt.Println(w.Wait(context.Background()))
	// Output: <nil>
}

func ExampleWork_Wait() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{c.Rank()}
		w := c.On(nil).Broadcast(ccl.BufOf(x), 1)
		if err := w.Wait(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return nil
	})
	// Output: [1]
}

func ExampleWork_Test() {
	ctx := context.Background()
	ranks(1, func(c *ccl.Comm) error {
		w := c.On(nil).Barrier()
		w.Wait(ctx)
		fmt.Println(w.Test())
		return nil
	})
	// Output: true <nil>
}

// Messages that must not wait for each other have Comms of their own: here each rank asks for
// one before it sends its own. On one Comm each Send would wait for the Recv before it.
func ExampleQueue_Send_bothWays() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		me, other := c.Rank(), 1-c.Rank()
		var way [2]*ccl.Comm // from rank 0 to 1, and from 1 to 0
		for i := range way {
			d, err := c.Split(ctx, 0, 0)
			if err != nil {
				return err
			}
			defer d.Close()
			way[i] = d
		}
		got := []int{0}
		in := way[other].On(ccl.NewHostStream()).Recv(ccl.BufOf(got), other)
		out := way[me].On(ccl.NewHostStream()).Send(ccl.BufOf([]int{10 + me}), other)
		err := errors.Join(in.Wait(ctx), out.Wait(ctx))
		if me == 1 {
			fmt.Println(got)
		}
		return err
	})
	// Output: [10]
}

// A HostStream orders functions and calls.
func ExampleHostStream() {
	s := ccl.NewHostStream()
	var order []int
	for i := range 3 {
		s.Do(func() error { order = append(order, i); return nil })
	}
	s.Do(func() error { fmt.Println(order); return nil }).Wait(context.Background())
	s.Close()
	// Output: [0 1 2]
}

func ExampleNewHostStream() {
	s := ccl.NewHostStream()
	fmt.Println(s.Close())
	// Output: <nil>
}

func ExampleHostStream_Do() {
	s := ccl.NewHostStream()
	defer s.Close()
	w := s.Do(func() error { return errors.New("disk full") })
	fmt.Println(w.Wait(context.Background()))
	// Output: ccl: Do: disk full
}

func ExampleHostStream_Handle() {
	s := ccl.NewHostStream()
	_, open := s.Handle()
	s.Close()
	_, still := s.Handle()
	fmt.Println(open, still)
	// Output: true false
}

// What was issued still ends; more is refused.
func ExampleHostStream_Close() {
	ctx := context.Background()
	s := ccl.NewHostStream()
	before := s.Do(func() error { return nil })
	s.Close()
	after := s.Do(func() error { return nil })
	fmt.Println(before.Wait(ctx), errors.Is(after.Wait(ctx), ccl.ErrClosed))
	// Output: <nil> true
}

func ExampleBufOf() {
	b := ccl.BufOf([]float32{1, 2, 3})
	fmt.Println(b.Type(), b.Len())
	// Output: float 3
}

// A Buf is cut as a slice is.
func ExampleBuf_From() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []int{1, 1, 1, 1}
		part := ccl.BufOf(x).From(1, 3)
		err := c.On(nil).AllReduce(part, part, ccl.Sum).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [1 2 2 1]
}

func ExampleBuf_Len() {
	fmt.Println(ccl.BufOf(make([]int, 5)).From(1, 4).Len())
	// Output: 3
}

func ExampleBuf_Type() {
	fmt.Println(ccl.BufOf([]ccl.BFloat16{}).Type())
	// Output: bfloat16
}

// A function on a stream works on what the Bufs before it hold.
func ExampleSliceOf() {
	b := ccl.BufOf([]float32{1, 2, 3}).From(1, 3)
	x, ok := ccl.SliceOf[float32](b)
	fmt.Println(x, ok)
	_, ok = ccl.SliceOf[int32](b)
	fmt.Println(ok)
	// Output:
	// [2 3] true
	// false
}

// Two gradients that lie side by side are one call.
func ExampleBuf_Join() {
	flat := make([]float32, 6)
	weights, biases := ccl.BufOf(flat[:4]), ccl.BufOf(flat[4:])
	both, ok := weights.Join(biases)
	fmt.Println(both.Len(), ok)
	_, ok = biases.Join(weights)
	fmt.Println(ok)
	// Output:
	// 6 true
	// false
}

// InPlace finds this rank's part of dst.
func ExampleInPlace() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := make([]int, 2)
		x[c.Rank()] = c.Rank() + 1
		err := c.On(nil).AllGather(ccl.BufOf(x), ccl.InPlace()).Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [1 2]
}
