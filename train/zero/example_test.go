package zero_test

import (
	"fmt"

	"github.com/goccl/goccl/train/zero"
)

// The table of the paper: 7.5 billion parameters on 64 ranks, in bfloat16 with AdamW in float32.
func ExampleNeed() {
	for stage := range 4 {
		fmt.Printf("stage %d: %.1f GB\n", stage, float64(zero.Need(7_500_000_000, stage, 64, 2, 2, 12))/1e9)
	}
	// Output:
	// stage 0: 120.0 GB
	// stage 1: 31.4 GB
	// stage 2: 16.6 GB
	// stage 3: 1.9 GB
}
