package optim_test

import (
	"fmt"

	"github.com/goccl/goccl/train/optim"
)

// Five steps of AdamW towards the minimum of (x-3)^2.
func ExampleApply() {
	x, m, v := []float32{0}, []float32{0}, []float32{0}
	h := optim.AdamW{LR: 1, Beta1: .9, Beta2: .99, Eps: 1e-8}
	for step := 1; step <= 5; step++ {
		g := []float32{2 * (x[0] - 3)}
		if err := optim.Apply(h, step, x, g, m, v); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%.2f ", x[0])
	}
	// Output: 1.00 1.97 2.87 3.63 4.17
}

func ExampleApplySGD() {
	x := []float32{0}
	for range 3 {
		if err := optim.ApplySGD(optim.SGD{LR: .25}, x, []float32{2 * (x[0] - 3)}, nil); err != nil {
			fmt.Println(err)
		}
		fmt.Print(x[0], " ")
	}
	// Output: 1.5 2.25 2.625
}

// 100 steps of warm-up, then half a cosine.
func ExampleCosine() {
	for _, step := range []int{1, 50, 100, 550, 1000} {
		fmt.Printf("%.5f ", optim.Cosine(step, 100, 1000, 1e-3, 1e-4))
	}
	// Output: 0.00001 0.00050 0.00100 0.00055 0.00010
}
