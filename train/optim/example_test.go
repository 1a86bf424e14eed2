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

// Lion steps by as much as LR, whatever the gradient is.
func ExampleApplyLion() {
	x, m := []float32{0}, []float32{0}
	for range 5 {
		if err := optim.ApplyLion(optim.Lion{LR: .5}, x, []float32{2 * (x[0] - 3)}, m); err != nil {
			fmt.Println(err)
		}
		fmt.Print(x[0], " ")
	}
	// Output: 0.5 1 1.5 2 2.5
}

// AdamW with moments of 8 bits: 2.03 bytes a parameter, not 8. A checkpoint has them as float32.
func ExampleApply8() {
	x, g := make([]float32, 1024), make([]float32, 1024)
	s := optim.NewMoments8(len(x))
	for step := 1; step <= 5; step++ {
		for i := range g {
			g[i] = 2 * (x[i] - 3)
		}
		if err := optim.Apply8(optim.AdamW{LR: 1, Beta1: .9, Beta2: .99}, step, x, g, s); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%.2f ", x[7])
	}
	m, v := make([]float32, len(x)), make([]float32, len(x))
	if err := s.Store(m, v); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("m %.2f v %.2f in %d bytes\n", m[7], v[7], s.Bytes())
	// Output: 1.00 1.97 2.87 3.63 4.17 m -0.75 v 0.56 in 2080 bytes
}

// 100 steps of warm-up, 700 at the peak, 200 of decay.
func ExampleWSD() {
	for _, step := range []int{50, 100, 800, 900, 1000} {
		fmt.Printf("%.5f ", optim.WSD(step, 100, 200, 1000, 1e-3, 0))
	}
	// Output: 0.00050 0.00100 0.00100 0.00050 0.00000
}

// What falls from the end of the warm-up on, at steps 100, 200, 400 and 900 of 1000.
func ExampleLinear() {
	for _, step := range []int{100, 200, 400, 900} {
		fmt.Printf("%.5f %.5f %.5f %.5f\n", optim.Constant(step, 100, 1e-3), optim.Linear(step, 100, 1000, 1e-3, 1e-4),
			optim.InverseSqrt(step, 100, 1e-3), optim.Stairs(step, 100, 200, 1e-3, .1))
	}
	// Output:
	// 0.00100 0.00100 0.00100 0.00100
	// 0.00100 0.00090 0.00071 0.00100
	// 0.00100 0.00070 0.00050 0.00010
	// 0.00100 0.00020 0.00033 0.00000
}
