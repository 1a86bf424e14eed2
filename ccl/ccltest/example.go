package ccltest

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// Example runs f as each of n ranks of this process, on one host, and prints the errors. It is for
// example functions, which have no testing.TB. The programs that they stand for call [ccl.Join].
func Example(n int, f func(c *ccl.Comm) error) {
	var all sync.WaitGroup
	for _, b := range boot.Local(n) {
		all.Go(func() {
			c, err := ccl.NewComm(context.Background(), b, nil)
			if err == nil {
				defer c.Close()
				err = f(c)
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
}
