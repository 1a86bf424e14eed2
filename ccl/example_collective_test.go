package ccl_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

func ExampleAllReduce() {
	ctx := context.Background()
	ranks(4, func(c *ccl.Comm) error {
		src := []float32{float32(c.Rank()), 1}
		dst := make([]float32, 2)
		err := ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [6 4]
}

// In place: dst and src are one slice.
func ExampleAllReduce_inPlace() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		x := []int{c.Rank(), -c.Rank()}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Max)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [2 0]
}

func ExampleReduce() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		src := []int{c.Rank() + 1}
		var dst []int // of no meaning but on the root
		if c.Rank() == 2 {
			dst = make([]int, 1)
		}
		err := ccl.Reduce(ctx, c, dst, src, ccl.Prod, 2)
		if c.Rank() == 2 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [6]
}

func ExampleReduceScatter() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		src := []int{1, 2, 3, 4}
		dst := make([]int, 2)
		got[c.Rank()] = dst
		return ccl.ReduceScatter(ctx, c, dst, src, ccl.Sum)
	})
	fmt.Println(got)
	// Output: [[2 4] [6 8]]
}

func ExampleReduceScatterV() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		counts := []int{1, 3}
		src := []int{1, 2, 3, 4}
		dst := make([]int, counts[c.Rank()])
		got[c.Rank()] = dst
		return ccl.ReduceScatterV(ctx, c, dst, src, counts, ccl.Sum)
	})
	fmt.Println(got)
	// Output: [[2] [4 6 8]]
}

func ExampleBroadcast() {
	ctx := context.Background()
	got := make([][]int, 3)
	ranks(3, func(c *ccl.Comm) error {
		buf := make([]int, 2)
		if c.Rank() == 1 {
			buf[0], buf[1] = 7, 8
		}
		got[c.Rank()] = buf
		return ccl.Broadcast(ctx, c, buf, 1)
	})
	fmt.Println(got)
	// Output: [[7 8] [7 8] [7 8]]
}

func ExampleAllGather() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		src := []int{c.Rank(), 10 * c.Rank()}
		dst := make([]int, 3*len(src))
		err := ccl.AllGather(ctx, c, dst, src)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [0 0 1 10 2 20]
}

func ExampleAllGatherV() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		counts := []int{2, 0, 1}
		src := make([]int, counts[c.Rank()])
		for i := range src {
			src[i] = c.Rank() + 1
		}
		dst := make([]int, 3)
		err := ccl.AllGatherV(ctx, c, dst, counts, src)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [1 1 3]
}

func ExampleGather() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		var dst []int // of no meaning but on the root
		if c.Rank() == 0 {
			dst = make([]int, 3)
		}
		err := ccl.Gather(ctx, c, dst, []int{2 * c.Rank()}, 0)
		if c.Rank() == 0 {
			fmt.Println(dst)
		}
		return err
	})
	// Output: [0 2 4]
}

func ExampleGatherV() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		counts := []int{1, 2, 1} // the same on all ranks
		src := []byte("xyz")[:counts[c.Rank()]]
		var dst []byte
		if c.Rank() == 0 {
			dst = make([]byte, 4)
		}
		err := ccl.GatherV(ctx, c, dst, counts, src, 0)
		if c.Rank() == 0 {
			fmt.Printf("%s\n", dst)
		}
		return err
	})
	// Output: xxyx
}

func ExampleScatter() {
	ctx := context.Background()
	got := make([][]int, 3)
	ranks(3, func(c *ccl.Comm) error {
		var src []int
		if c.Rank() == 0 {
			src = []int{10, 11, 20, 21, 30, 31}
		}
		dst := make([]int, 2)
		got[c.Rank()] = dst
		return ccl.Scatter(ctx, c, dst, src, 0)
	})
	fmt.Println(got)
	// Output: [[10 11] [20 21] [30 31]]
}

func ExampleScatterV() {
	ctx := context.Background()
	got := make([]string, 3)
	ranks(3, func(c *ccl.Comm) error {
		counts := []int{4, 0, 2}
		var src []byte
		if c.Rank() == 2 {
			src = []byte("goccl!")
		}
		dst := make([]byte, counts[c.Rank()])
		err := ccl.ScatterV(ctx, c, dst, src, counts, 2)
		got[c.Rank()] = string(dst)
		return err
	})
	fmt.Printf("%q\n", got)
	// Output: ["gocc" "" "l!"]
}

func ExampleAllToAll() {
	ctx := context.Background()
	got := make([][]int, 2)
	ranks(2, func(c *ccl.Comm) error {
		src := []int{10 * c.Rank(), 10*c.Rank() + 1}
		dst := make([]int, 2)
		got[c.Rank()] = dst
		return ccl.AllToAll(ctx, c, dst, src)
	})
	fmt.Println(got)
	// Output: [[0 10] [1 11]]
}

func ExampleAllToAllV() {
	ctx := context.Background()
	got := make([]string, 2)
	ranks(2, func(c *ccl.Comm) error {
		// Rank 0 keeps 1 and gives 2, rank 1 gives 3 and keeps nothing.
		sc := [][]int{{1, 2}, {3, 0}}[c.Rank()]
		dc := [][]int{{1, 3}, {2, 0}}[c.Rank()]
		src := [][]byte{[]byte("abc"), []byte("xyz")}[c.Rank()]
		dst := make([]byte, dc[0]+dc[1])
		err := ccl.AllToAllV(ctx, c, dst, dc, src, sc)
		got[c.Rank()] = string(dst)
		return err
	})
	fmt.Println(got)
	// Output: [axyz bc]
}

func ExampleSend() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		if c.Rank() == 0 {
			return ccl.Send(ctx, c, []byte("hello"), 1)
		}
		buf := make([]byte, 5)
		err := ccl.Recv(ctx, c, buf, 0)
		fmt.Printf("%s\n", buf)
		return err
	})
	// Output: hello
}

// What one rank sends to another arrives in the order in which it was sent.
func ExampleRecv() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		for i := range 3 {
			x := []int{i * i}
			if c.Rank() == 1 {
				if err := ccl.Send(ctx, c, x, 0); err != nil {
					return err
				}
				continue
			}
			if err := ccl.Recv(ctx, c, x, 1); err != nil {
				return err
			}
			fmt.Println(x)
		}
		return nil
	})
	// Output:
	// [0]
	// [1]
	// [4]
}

// A ring shift: each rank gives to the next and takes from the one before it.
func ExampleSendRecv() {
	ctx := context.Background()
	got := make([]int, 4)
	ranks(4, func(c *ccl.Comm) error {
		n, r := c.Size(), c.Rank()
		src, dst := []int{r}, make([]int, 1)
		err := ccl.SendRecv(ctx, c, dst, (r+n-1)%n, src, (r+1)%n)
		got[r] = dst[0]
		return err
	})
	fmt.Println(got)
	// Output: [3 0 1 2]
}

func ExampleBarrier() {
	ctx := context.Background()
	here := make([]bool, 3)
	ranks(3, func(c *ccl.Comm) error {
		here[c.Rank()] = true
		err := ccl.Barrier(ctx, c)
		if c.Rank() == 0 {
			fmt.Println(here) // all have been there
		}
		return err
	})
	// Output: [true true true]
}

// Memory that the ranks of a host share saves copies.
func ExampleMakeSlice() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x, err := ccl.MakeSlice[float32](ctx, c, 3)
		if err != nil {
			return err
		}
		defer ccl.FreeSlice(x)
		for i := range x {
			x[i] = float32(i)
		}
		err = ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [0 2 4]
}

// FreeSlice takes no notice of slices that MakeSlice did not make.
func ExampleFreeSlice() {
	x := []int{1, 2, 3}
	ccl.FreeSlice(x)
	fmt.Println(x)
	// Output: [1 2 3]
}
