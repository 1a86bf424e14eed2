package zero_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// Two ranks fit y = 3x + 1, each on its own samples, with one loop for all stages: the result is the same at each. The
// model has two units: a factor, and a shift.
func Example() {
	for stage := range 4 {
		ccltest.Example(2, func(c *ccl.Comm) error {
			return fit(context.Background(), c, stage)
		})
	}
	// Output:
	// stage 0: y = 3.00 x + 1.00
	// stage 1: y = 3.00 x + 1.00
	// stage 2: y = 3.00 x + 1.00
	// stage 3: y = 3.00 x + 1.00
}

func fit(ctx context.Context, c *ccl.Comm, stage int) error {
	m, err := zero.New[float32, float32](ctx, c, [][]int{{1}, {1}}, &zero.Options{Stage: stage, Clip: 100})
	if err != nil {
		return err
	}
	defer m.Close()
	use := func(unit int) (w float32, err error) { // of one parameter
		p, err := m.Params(ctx, unit)
		if err == nil {
			w = p[0][0]
			m.Release(unit)
		}
		return w, err
	}
	for step := range 400 {
		x := float32((step+c.Rank())%5) - 2 // this rank's sample
		a, err := use(0)
		if err != nil {
			return err
		}
		b, err := use(1)
		if err != nil {
			return err
		}
		loss := a*x + b - (3*x + 1) // its derivative, by half
		for unit, grad := range []float32{loss * x, loss} {
			g, err := m.Grads(ctx, unit)
			if err != nil {
				return err
			}
			g[0][0] += grad
			if err := m.Reduce(unit); err != nil {
				return err
			}
		}
		err = m.Step(ctx, func(_ zero.Piece, w, g []float32) error {
			return optim.ApplySGD(optim.SGD{LR: .2}, w, g, nil)
		})
		if err != nil {
			return err
		}
	}
	a, err := use(0)
	if err != nil {
		return err
	}
	b, err := use(1)
	if err == nil && c.Rank() == 0 {
		fmt.Printf("stage %d: y = %.2f x + %.2f\n", stage, a, b)
	}
	return err
}
