package whole_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

// A gradient that is large in one direction: Muon steps in both alike.
func ExampleApplyMuon() {
	t := whole.Tensor{Name: "w", Rows: 2, Cols: 2}
	p, g, m := make([]float32, 4), []float32{100, 0, 0, 1}, make([]float32, 4)
	var work whole.Workspace[float32]
	for range 2 {
		if err := whole.ApplyMuon(whole.Muon{LR: .1}, t, p, g, m, &work); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%.2f\n", p)
	// A shard that has a part of it:
	t.Lo, t.Hi = 2, 4
	fmt.Println(whole.ApplyMuon(whole.Muon{LR: .1}, t, p[2:], g[2:], m[2:], &work))
	// Output:
	// [-0.14 0.00 0.00 -0.14]
	// optim/whole: Muon takes all of "w", 2 x 2, and this shard has elements 2 to 4 of 4: an Optimizer takes parts
}

// The state of a matrix of 1,000 x 200 is 1,200 numbers. A step changes it by LR, relative to its own size.
func ExampleApplyAdafactor() {
	t := whole.Tensor{Name: "w", Rows: 1000, Cols: 200}
	p, g := make([]float32, 1000*200), make([]float32, 1000*200)
	for i := range p {
		p[i], g[i] = 10, .5
	}
	rows, cols := t.State()
	row, col := make([]float32, rows), make([]float32, cols)
	if err := whole.ApplyAdafactor(whole.Adafactor{}, 1, t, p, g, row, col); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%d %.3f\n", rows+cols, p[:3])
	// Output: 1200 [9.900 9.900 9.900]
}

// The step is as long as the tensor, times LR.
func ExampleApplyLAMB() {
	t := whole.Tensor{Name: "w", Rows: 1, Cols: 2}
	p, m, v := []float32{30, 40}, make([]float32, 2), make([]float32, 2)
	if err := whole.ApplyLAMB(whole.LAMB{LR: .1}, 1, t, p, []float32{1e-3, 1e-3}, m, v); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%.2f\n", p)
	// Output: [26.46 36.46]
}

// Two ranks have halves of a matrix. LAMB's step is as long as all of it.
func ExampleNew() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		m, err := zero.New[float32, float32](ctx, c, [][]int{{4 * 16}}, &zero.Options{Stage: 3})
		if err != nil {
			return err
		}
		defer m.Close()
		w := make([]float32, 4*16)
		for i := range w {
			w[i] = 5
		}
		if err := m.Load(ctx, 0, [][]float32{w}, 0); err != nil {
			return err
		}
		o, err := whole.New(ctx, c, m, [][]whole.Tensor{{{Name: "w", Rows: 4, Cols: 16}}},
			func(unit, param int) whole.Rule { return whole.LAMB{LR: .1} })
		if err != nil {
			return err
		}
		g, err := m.Grads(ctx, 0)
		if err != nil {
			return err
		}
		g[0][0] = 1
		if err := m.Reduce(0); err != nil {
			return err
		}
		if err := o.Step(ctx, 1); err != nil {
			return err
		}
		p, err := m.Params(ctx, 0)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("%.2f\n", p[0][:3])
		}
		return nil
	})
	// Output: [1.00 5.00 5.00]
}
