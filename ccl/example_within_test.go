package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A future of another runtime is completed by the goroutine that ends the call.
func ExampleWork_OnDone() {
	ranks(2, func(c *ccl.Comm) error {
		x, future := []float32{1}, make(chan error, 1)
		c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum).OnDone(func(err error) { future <- err })
		err := <-future
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [2]
}

// One barrier has a limit of its own, and says who is late.
func ExampleQueue_Within() {
	ranks(3, func(c *ccl.Comm) error {
		if c.Rank() > 0 {
			<-c.Done() // is late
			return nil
		}
		var e *ccl.Error
		if errors.As(c.On(nil).Within(50*time.Millisecond).Barrier().Wait(context.Background()), &e) {
			fmt.Println(e.Code, e.Missing)
		}
		return nil
	})
	// Output: timed out [1 2]
}

// Rank 0 learns which ranks are late.
func ExampleMonitoredBarrier() {
	ranks(3, func(c *ccl.Comm) error {
		if c.Rank() > 0 {
			<-c.Done() // is late
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		var e *ccl.Error
		if errors.As(ccl.MonitoredBarrier(ctx, c), &e) {
			fmt.Println(e.Code, e.Missing)
		}
		return nil
	})
	// Output: timed out [1 2]
}

// A binding for another language says where its user's call is.
func ExampleQueue_From() {
	ranks(1, func(c *ccl.Comm) error {
		err := c.On(nil).From("train.py:88").Barrier().Wait(context.Background())
		for call := range c.Trace() {
			fmt.Println(&call)
		}
		return err
	})
	// Output: Barrier #1 at train.py:88
}

// A set of flags that any rank has set.
func ExampleElement() {
	ranks(2, func(c *ccl.Comm) error {
		stop := []bool{c.Rank() == 1}
		err := ccl.AllReduce(context.Background(), c, stop, stop, ccl.BOr)
		if c.Rank() == 0 {
			fmt.Println(stop[0])
		}
		return err
	})
	// Output: true
}
