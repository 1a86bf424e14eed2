package loader_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/loader"
)

// Up to four items are loaded while one is used. The run stops, and goes on from what was used.
func ExamplePrefetch() {
	ctx := context.Background()
	load := func(_ context.Context, item int) (string, error) { return fmt.Sprintf("file %d", item), nil } // os.ReadFile
	consumed := 0
	for range 2 {
		items, err := data.Sampler{N: 6, Seed: 1}.Epoch(0, consumed)
		if err != nil {
			fmt.Println(err)
			return
		}
		for x, err := range loader.Prefetch(ctx, items, 4, load) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Print(x.Value, "; ")
			if consumed = x.Consumed; consumed == 2 {
				break
			}
		}
		fmt.Println("consumed", consumed)
	}
	// Output:
	// file 1; file 0; consumed 2
	// file 3; file 4; file 5; file 2; consumed 6
}
