// Command kept makes calls over oneCCL on two Comms, whose bootstrap is MPI, and says whether MPI
// is initialised meanwhile, and after the last of them is closed.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/mpi"
)

func must(err error) {
	if err != nil {
		fmt.Println("kept:", err)
		os.Exit(1)
	}
}

func sum(c *ccl.Comm) {
	x := []int32{1}
	must(ccl.AllReduce(context.Background(), c, x, x, ccl.Sum))
	fmt.Printf("%s: the sum is %d, MPI initialised: %v, finalised: %v\n", c.Name(), x[0], mpi.Initialized(),
		mpi.Finalized())
}

func main() {
	ctx := context.Background()
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "oneccl"})
	must(err)
	sum(c)
	part, err := c.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Name = "part" })
	must(err)
	must(c.Close())
	sum(part)
	must(part.Close())
	fmt.Printf("closed: MPI initialised: %v, finalised: %v\n", mpi.Initialized(), mpi.Finalized())
	if len(os.Args) > 1 { // once more
		_, err = ccl.NewComm(ctx, alone{}, &ccl.Options{Backend: "oneccl"})
		fmt.Println("again:", err)
	}
}

// alone is a job of one rank.
type alone struct{}

func (alone) Rank() int                                                  { return 0 }
func (alone) Size() int                                                  { return 1 }
func (alone) AllGather(_ context.Context, data []byte) ([][]byte, error) { return [][]byte{data}, nil }
func (alone) Close() error                                               { return nil }
