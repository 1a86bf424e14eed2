package mesh_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
)

// Eight ranks hold two replicas of a model, each in two stages of a pipeline, whose layers two ranks share.
func ExampleNew() {
	ctx := context.Background()
	ccltest.Example(8, func(c *ccl.Comm) error {
		m, err := mesh.New(ctx, c, mesh.Dim{Name: "dp"}, mesh.Dim{Name: "pp", Size: 2}, mesh.Dim{Name: "tp", Size: 2})
		if err != nil {
			return err
		}
		defer m.Close()
		sum := []int{c.Rank()}
		err = ccl.AllReduce(ctx, m.Comm("dp"), sum, sum, ccl.Sum)
		if c.Rank() == 5 {
			fmt.Println(m)
			fmt.Println(m.Comm("dp").Name(), "has ranks that sum to", sum[0])
		}
		return err
	})
	// Output:
	// dp=2 pp=2 tp=2, rank 5 = (1,0,1)
	// dp of pp=0 tp=1 has ranks that sum to 6
}

// Flags name the dimensions. One of them may take what is left over.
func ExampleParse() {
	dims, err := mesh.Parse("dp,tp=8")
	fmt.Println(dims, err)
	// Output: [{dp 0} {tp 8}] <nil>
}

// The gradients of what every rank holds whole are summed over all ranks but those of the pipeline.
func ExampleMesh_Join() {
	ctx := context.Background()
	ccltest.Example(8, func(c *ccl.Comm) error {
		m, err := mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: 2}, mesh.Dim{Name: "pp", Size: 2}, mesh.Dim{Name: "sp", Size: 2})
		if err != nil {
			return err
		}
		defer m.Close()
		j, err := m.Join(ctx, "dp", "sp")
		if err == nil && c.Rank() == 0 {
			fmt.Println(j.Name(), "has", j.Size(), "ranks")
		}
		return err
	})
	// Output: dp x sp of pp=0 has 4 ranks
}
