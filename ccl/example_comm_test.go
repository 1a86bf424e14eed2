package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// A program that is started by a launcher needs no more than Join; under none it is
// a job of one rank.
func ExampleJoin() {
	os.Setenv("GOCCL_LAUNCHER", "none") // only here, whatever runs this example
	defer os.Unsetenv("GOCCL_LAUNCHER")
	c, err := ccl.Join(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c)
	// Output: rank 0 of 1 (1 host, cpu, memory)
}

func ExampleNewComm() {
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, b := range boot.Local(2) {
		wg.Go(func() {
			c, err := ccl.NewComm(ctx, b, &ccl.Options{Check: ccl.CheckStrict})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			if c.Rank() == 1 {
				fmt.Println(c)
			}
			ccl.Barrier(ctx, c)
		})
	}
	wg.Wait()
	// Output: rank 1 of 2 (1 host, cpu, memory)
}

// alone is a Bootstrap: whatever has these three methods is one.
type alone struct{}

func (alone) Rank() int { return 0 }
func (alone) Size() int { return 1 }
func (alone) AllGather(_ context.Context, mine []byte) ([][]byte, error) {
	return [][]byte{mine}, nil
}

func ExampleBootstrap() {
	c, err := ccl.NewComm(context.Background(), alone{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c.Rank(), "of", c.Size())
	// Output: 0 of 1
}

// OnFailure tells of a failure wherever the program is at the time.
func ExampleOptions() {
	o := &ccl.Options{OnFailure: func(e *ccl.Error) { fmt.Println("failed:", e) }}
	ranksWith(1, o, func(c *ccl.Comm) error {
		c.Abort(errors.New("the loss is NaN"))
		<-c.Done()
		return nil
	})
	// Output: failed: ccl: rank 0: Comm: aborted by rank 0: the loss is NaN
}

func ExampleComm() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c)
		return nil
	})
	// Output: rank 0 of 1 (1 host, cpu, memory)
}

func ExampleComm_Rank() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		if c.Rank() == 2 {
			fmt.Println("rank", c.Rank(), "is the last")
		}
		return ccl.Barrier(ctx, c)
	})
	// Output: rank 2 is the last
}

func ExampleComm_Size() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		if c.Rank() == 0 {
			fmt.Println(c.Size())
		}
		return ccl.Barrier(ctx, c)
	})
	// Output: 3
}

// Place tells which device or core should be a rank's own.
func ExampleComm_Place() {
	ctx := context.Background()
	ranks(4, func(c *ccl.Comm) error {
		if p := c.Place(); c.Rank() == 3 {
			fmt.Printf("host %d of %d, rank %d of %d there\n", p.Node, p.Nodes, p.Local, p.Locals)
		}
		return ccl.Barrier(ctx, c)
	})
	// Output: host 0 of 1, rank 3 of 4 there
}

func ExampleComm_String() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c.String())
		return nil
	})
	// Output: rank 0 of 1 (1 host, cpu, memory)
}

// Goroutines exchange data through plain memory.
func ExampleComm_Transport() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		if c.Rank() == 0 {
			fmt.Println(c.Transport())
		}
		return ccl.Barrier(ctx, c)
	})
	// Output: memory
}

// Plan says how a call would go, without making it.
func ExampleComm_Plan() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		if c.Rank() == 0 {
			fmt.Println(c.Plan(ccl.KindAllReduce, ccl.TypeFloat32, ccl.Sum, 16))
			fmt.Println(c.Plan(ccl.KindAllReduce, ccl.TypeFloat32, ccl.Sum, 1<<20))
		}
		return ccl.Barrier(ctx, c)
	})
	// Output:
	// inline over memory
	// staged over memory
}

func ExampleComm_Supports() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c.Supports(ccl.KindAllReduce, ccl.TypeBFloat16, ccl.Sum))
		err := c.Supports(ccl.KindAllReduce, ccl.TypeComplex64, ccl.Prod)
		fmt.Println(errors.Is(err, ccl.ErrUnsupported))
		return nil
	})
	// Output:
	// <nil>
	// true
}

// On the CPU there is no communicator of a library.
func ExampleComm_Native() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c.Native())
		return nil
	})
	// Output: 0
}

// Rows and columns of a mesh: ranks that give the same color get a Comm of their
// own, in the order of their keys.
func ExampleComm_Split() {
	ctx := context.Background()
	const columns = 3
	got := make([]string, 6)
	ranks(6, func(c *ccl.Comm) error {
		row, err := c.Split(ctx, c.Rank()/columns, c.Rank())
		if err != nil {
			return err
		}
		defer row.Close()
		x := []int{c.Rank()}
		err = ccl.AllReduce(ctx, row, x, x, ccl.Sum)
		got[c.Rank()] = fmt.Sprintf("%d/%d: %d", row.Rank(), row.Size(), x[0])
		return err
	})
	fmt.Println(got)
	// Output: [0/3: 3 1/3: 3 2/3: 3 0/3: 12 1/3: 12 2/3: 12]
}

// Gradients are added in the order of ranks, for the same bits on any machine; nothing else pays for it.
func ExampleComm_SplitWith() {
	ctx := context.Background()
	ranks(4, func(c *ccl.Comm) error {
		dp, err := c.SplitWith(ctx, c.Rank()%2, c.Rank(), func(o *ccl.Options) {
			o.Name = "dp"
			o.RankOrder = true
			o.Timeout = time.Minute
		})
		if err != nil {
			return err
		}
		defer dp.Close()
		if c.Rank() == 0 {
			fmt.Println(dp.Name(), dp.Size())
		}
		return nil
	})
	// Output: dp 2
}

// Abort ends the calls of all ranks.
func ExampleComm_Abort() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		if c.Rank() == 1 {
			c.Abort(errors.New("no space left"))
			return nil
		}
		err := ccl.Barrier(ctx, c) // which rank 1 never calls
		fmt.Println(errors.Is(err, ccl.ErrAborted))
		return nil
	})
	// Output: true
}

// The function that makes a Comm defers Finish. Its error, or its panic, is what the other ranks get.
func ExampleComm_Finish() {
	use := func(ctx context.Context, c *ccl.Comm) (err error) {
		defer c.Finish(&err)
		if c.Rank() == 1 {
			return errors.New("no such file")
		}
		return ccl.Barrier(ctx, c)
	}
	ranks(2, func(c *ccl.Comm) error {
		if err := use(context.Background(), c); c.Rank() == 0 {
			fmt.Println(errors.Is(err, ccl.ErrAborted), strings.HasSuffix(err.Error(), "aborted by rank 1: no such file"))
		}
		return nil
	})
	// Output: true true
}

// Who has closed a Comm can make no calls on it.
func ExampleComm_Close() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c.Close(), c.Close())
		fmt.Println(ccl.Barrier(context.Background(), c))
		return nil
	})
	// Output:
	// <nil> <nil>
	// ccl: rank 0: Barrier: the Comm is closed
}

// Done lets a select wait for a failure beside other things.
func ExampleComm_Done() {
	ranks(1, func(c *ccl.Comm) error {
		work := make(chan int)
		go c.Abort(errors.New("enough"))
		select {
		case <-work:
		case <-c.Done():
			fmt.Println(c.Err())
		}
		return nil
	})
	// Output: ccl: rank 0: Comm: aborted by rank 0: enough
}

func ExampleComm_Err() {
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(c.Err())
		c.Abort(errors.New("enough"))
		fmt.Println(errors.Is(c.Err(), ccl.ErrAborted))
		return nil
	})
	// Output:
	// <nil>
	// true
}

// The flight recorder knows the last calls.
func ExampleComm_Trace() {
	ctx := context.Background()
	ranks(1, func(c *ccl.Comm) error {
		x := make([]float32, 8)
		ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		ccl.Broadcast(ctx, c, x[:2], 0)
		for k := range c.Trace() {
			fmt.Println(k.State, &k)
		}
		return nil
	})
	// Output:
	// complete AllReduce #1 float x 8 sum
	// complete Broadcast #2 float x 2 root 0
}
