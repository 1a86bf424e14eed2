package mirror_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mirror"
)

// Rank 1 loses its state after step 2, as a spare that takes its place has none. Restore brings it
// back from rank 2, which holds it.
func Example() {
	ccltest.Example(3, func(c *ccl.Comm) (err error) {
		ctx := context.Background()
		m := mirror.New(nil)
		defer func() { m.Close() }()
		w := []float32{0}

		step, err := m.Restore(ctx, c, nil, ccl.BufOf(w))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("at the start Restore returns", step)
		}
		for step := range 3 {
			w[0] += float32(10*step + c.Rank()) // an update
			if err := m.Save(ctx, step, ccl.BufOf(w)); err != nil {
				return err
			}
		}

		if err := m.Wait(ctx); err != nil {
			return err
		}

		if c.Rank() == 1 { // in its place comes one that knows nothing
			m.Close()
			m, w = mirror.New(nil), []float32{0}
		}
		if step, err = m.Restore(ctx, c, []int{1}, ccl.BufOf(w)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println("step", step, "w", w)
		}
		return nil
	})
	// Unordered output:
	// at the start Restore returns -1
	// step 2 w [33]
}
