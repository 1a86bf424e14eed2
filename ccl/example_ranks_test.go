package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// ranks runs f as each of n ranks, which are goroutines of this process, and prints
// what any of them returns.
func ranks(n int, f func(c *ccl.Comm) error) { ranksWith(n, nil, f) }

// ranksWith is ranks with options.
func ranksWith(n int, o *ccl.Options, f func(c *ccl.Comm) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, b := range boot.Local(n) {
		wg.Go(func() {
			c, err := ccl.NewComm(ctx, b, o)
			if err == nil {
				defer c.Close()
				err = f(c)
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
}

// Ranks may be processes, started by any launcher; see Join. Here they are
// goroutines.
func Example() {
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, b := range boot.Local(4) {
		wg.Go(func() {
			c, err := ccl.NewComm(ctx, b, nil)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			x := []float64{1, float64(c.Rank())}
			if err := ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
				fmt.Println(err)
				return
			}
			if c.Rank() == 0 {
				fmt.Println(x)
			}
		})
	}
	wg.Wait()
	// Output: [4 6]
}
