package elastic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/elastic"
)

// A least-squares fit by local steps: each rank makes ten of its own, and then all take the mean of
// what they have learned.
func Example() {
	w := []float64{0, 0}                                // what all have alike
	change, mean := make([]float64, 2), []float64{0, 0} // of this rank, and of all
	err := elastic.Run(context.Background(), &elastic.Job{
		State:  []ccl.Buf{ccl.BufOf(w)},
		Most:   16,
		Rounds: 60,
		Local: func(_ context.Context, round int) error {
			a, b := w[0], w[1]
			for i := range 10 { // of y = 3x + 1
				x := float64(i%4) - 1.5
				e := a*x + b - (3*x + 1)
				a, b = a-.05*e*x, b-.05*e
			}
			change[0], change[1] = a-w[0], b-w[1]
			return nil
		},
		Share: func(ctx context.Context, r *elastic.Round) error {
			if err := elastic.Mean(ctx, r, mean, change); err != nil {
				return err
			}
			w[0], w[1] = w[0]+mean[0], w[1]+mean[1]
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("y = %.2fx + %.2f\n", w[0], w[1])
	// Output: y = 3.00x + 1.00
}
