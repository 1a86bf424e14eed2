package tp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/tp"
)

// The second layer of a pair, y = h*B for one token, is split by rows: each rank has two of the four elements of h.
func ExampleLeave() {
	ctx := context.Background()
	h, b := []float32{1, 2, 3, 4}, []float32{1, 10, 100, 1000}
	ccltest.Example(2, func(c *ccl.Comm) error {
		mine, err := tp.Shard(tp.Layout{Rows: 4, Cols: 1, ByRows: true}, b, c.Rank(), c.Size())
		if err != nil {
			return err
		}
		partial := []float32{0}
		for i, w := range mine {
			partial[0] += h[2*c.Rank()+i] * w
		}
		y, err := tp.Leave(ctx, &tp.Group{Comm: c}, nil, partial)
		if c.Rank() == 1 {
			fmt.Println(mine, y)
		}
		return err
	})
	// Output: [100 1000] [4321]
}

// Of query, key and value, which lie side by side, each rank gets the columns of its heads.
func ExampleShard() {
	qkv := []int{10, 11, 20, 21, 30, 31} // one row: a query, a key and a value of two heads
	l := tp.Layout{Rows: 1, Cols: 6, Blocks: 3}
	for rank := range 2 {
		fmt.Println(tp.Shard(l, qkv, rank, 2))
	}
	// Output:
	// [10 20 30] <nil>
	// [11 21 31] <nil>
}

// Four heads of queries share two of keys and two of values: each rank gets whole heads of all three.
func ExampleLayout_parts() {
	qkv := []int{10, 11, 12, 13, 20, 21, 30, 31} // one row, with heads of one element
	l := tp.Layout{Rows: 1, Cols: 8, Parts: []int{4, 2, 2}}
	for rank := range 2 {
		fmt.Println(tp.Shard(l, qkv, rank, 2))
	}
	fmt.Println(l.Check(4))
	// Output:
	// [10 11 20 30] <nil>
	// [12 13 21 31] <nil>
	// tp: the 2 columns of part 1, in units of 1, do not divide among 4 ranks
}

// Five words on two ranks: the sixth is padding. However large its logit is, it is in no softmax and has no gradient.
func ExampleRowsCrossEntropy() {
	ctx := context.Background()
	l := tp.Layout{Rows: 5, Cols: 1, ByRows: true, Pad: true}
	ccltest.Example(2, func(c *ccl.Comm) error {
		logits := []float64{0, 0, 0}
		if c.Rank() == 1 {
			logits[2] = 1000
		}
		d := make([]float64, 3)
		o := tp.LossOptions{Words: 5}
		loss, err := tp.RowsCrossEntropy(ctx, &tp.Group{Comm: c}, d, logits, []int32{3}, c.Rank()*l.Share(2), o)
		if c.Rank() == 1 {
			fmt.Printf("%.4f %.1f\n", loss, d)
		}
		return err
	})
	// Output: 1.6094 [-0.8 0.2 0.0]
}
