package amp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/amp"
)

// Of the gradients of two ranks one overflows float16 in the second step. Both skip it, and go on with half of the scale.
func Example() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		s, err := amp.New(ctx, c, &amp.Options{Init: 1024, Interval: 2})
		if err != nil {
			return err
		}
		for step, gradient := range []float32{.25, 90, .25, .25, .25} {
			if c.Rank() == 0 {
				gradient = .5
			}
			half := []ccl.Float16{ccl.ToFloat16(gradient * float32(s.Scale()))}
			g, scale := []float32{0}, s.Scale()
			finite := amp.Multiply(g, half, s.Factor(0, 0))
			ok, err := s.Step(ctx, finite)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println("step", step, "scale", scale, "gradient", g[0], ok)
			}
		}
		return nil
	})
	// Output:
	// step 0 scale 1024 gradient 0.5 true
	// step 1 scale 1024 gradient 0.5 false
	// step 2 scale 512 gradient 0.5 true
	// step 3 scale 512 gradient 0.5 true
	// step 4 scale 1024 gradient 0.5 true
}
