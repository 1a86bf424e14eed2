package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// The CPU engine is in every build; a build with -tags nccl lists "nccl", too.
func ExampleBackends() {
	fmt.Println(slices.Contains(ccl.Backends(), "cpu"))
	// Output: true
}

func ExampleComm_Backend() {
	ranksWith(1, &ccl.Options{Backend: "cpu"}, func(c *ccl.Comm) error {
		fmt.Println(c.Backend())
		return nil
	})
	// Output: cpu
}

// Library is for reports: which version of which library has moved the data.
func ExampleComm_Library() {
	ranksWith(1, &ccl.Options{Backend: "cpu"}, func(c *ccl.Comm) error {
		fmt.Printf("%q\n", c.Library()) // "NCCL 2.28.9" where the backend is nccl
		return nil
	})
	// Output: ""
}

func ExampleComm_Name() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		part, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		defer part.Close()
		if c.Rank() == 1 {
			fmt.Println(c.Name(), part.Name())
		}
		return nil
	})
	// Output: world world/1
}

// Errors and reports call a Comm by its name.
func ExampleComm_SetName() {
	ranks(1, func(c *ccl.Comm) error {
		c.SetName("tensor")
		c.Abort(errors.New("the loss is NaN"))
		fmt.Println(ccl.Barrier(context.Background(), c))
		return nil
	})
	// Output: ccl: tensor: rank 0: Barrier #1 at ccl/example_report_test.go:57: aborted by rank 0: the loss is NaN
}

// After a failure those that are left go on with a Comm of their own.
func ExampleComm_Shrink() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		if c.Rank() == 1 {
			return c.Close() // it is gone; so would be a rank that was killed
		}
		if err := ccl.Barrier(ctx, c); err == nil {
			return errors.New("nobody was missed")
		}
		left, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		defer left.Close()
		x := []int{c.Rank()}
		if err := ccl.AllReduce(ctx, left, x, x, ccl.Sum); err != nil {
			return err
		}
		if left.Rank() == 1 {
			fmt.Println("rank 2 is rank 1 of", left.Size(), "now; their old ranks add up to", x[0])
		}
		return nil
	})
	// Output: rank 2 is rank 1 of 2 now; their old ranks add up to 2
}

// Rank 2 waits as a spare until rank 1 is gone. What all ranks go on from is the step of the one that is furthest.
func ExampleComm_Replace() {
	ctx := context.Background()
	ranksWith(3, &ccl.Options{Spares: 1}, func(c *ccl.Comm) error {
		came := len(c.Fresh()) > 0 // in the place of another
		for step := 0; ; {
			at := []int{step}
			err := ccl.AllReduce(ctx, c, at, at, ccl.Max)
			if err == nil {
				step = at[0]
				c.Restored()
			}
			for err == nil && step < 4 {
				if c.Rank() == 1 && step == 2 && !came {
					return c.Close() // it is gone; so would be a rank that was killed
				}
				x := []int{step}
				if err = ccl.AllReduce(ctx, c, x, x, ccl.Sum); err == nil {
					step++
				}
			}
			if err == nil {
				if came {
					fmt.Println("the spare is rank", c.Rank(), "of", c.Size(), "at the end")
				}
				return nil
			}
			next, err := c.Replace(ctx)
			if err != nil {
				return err
			}
			defer next.Close()
			c = next
		}
	})
	// Output: the spare is rank 1 of 2 at the end
}

// Launched is the first half of Join, for a program that has something to say to all ranks before it makes a Comm.
func ExampleLaunched() {
	os.Setenv("GOCCL_LAUNCHER", "none") // only here, whatever runs this example
	defer os.Unsetenv("GOCCL_LAUNCHER")
	ctx := context.Background()
	b, done, err := ccl.Launched(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	all, err := b.AllGather(ctx, []byte("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := ccl.NewComm(ctx, b, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Printf("%s from rank %d\n", all[0], c.Rank())
	// Output: hello from rank 0
}

// OnCall sees each call as it ends: what it was, how long it took, how it ended.
func ExampleObservation() {
	o := &ccl.Options{OnCall: func(o ccl.Observation) { fmt.Println(o.Comm, o.Call.Kind, o.Bytes, "bytes", o.Err) }}
	ranksWith(1, o, func(c *ccl.Comm) error {
		x := make([]float32, 256)
		return ccl.AllReduce(context.Background(), c, x, x, ccl.Sum)
	})
	// Output: world AllReduce 1024 bytes <nil>
}

// gpuMemory stands for cuda.Mem[float32] and the like: whatever has these methods is device memory.
type gpuMemory struct{ elements int }

func (gpuMemory) Ptr() (addr uintptr, ok bool) { return 0x7f0000000000, true }
func (gpuMemory) Device() int                  { return 0 }
func (m gpuMemory) Len() int                   { return m.elements }
func (gpuMemory) Elem() float32                { return 0 }

// Device makes memory of a device an operand of a Queue's calls, as Host does a slice.
func ExampleBufOfMemory() {
	b := ccl.BufOfMemory(gpuMemory{1024}) // c.On(stream).AllReduce(b, ccl.InPlace(), ccl.Sum)
	fmt.Println(b.Len(), b.Type())
	// Output: 1024 float
}
