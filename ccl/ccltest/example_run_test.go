package ccltest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// tb stands for the *testing.T of a test, which an example has not.
type tb struct{ testing.TB }

func (tb) Helper()                           {}
func (tb) Name() string                      { return "Example" }
func (tb) Context() context.Context          { return context.Background() }
func (tb) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (tb) FailNow()                          {}
func (tb) Cleanup(func())                    {}

// t is the test's own in a test.
var t tb

// Each rank calls the function, with a Comm of its own.
func ExampleRun() {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		sum := []int{c.Rank() + 1}
		if err := ccl.AllReduce(t.Context(), c, sum, sum, ccl.Sum); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			fmt.Println(sum[0], "on", c.Size(), "ranks over", c.Transport())
		}
	})
	// Output: 6 on 3 ranks over memory
}

// A rank that fails ends the test as failed, and the other ranks with it.
func ExampleRun_fails() {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		if c.Rank() == 1 {
			t.Fatal("the sum is wrong")
		}
		ccl.Barrier(t.Context(), c) // does not wait for ever
	})
	// Output: rank 1: the sum is wrong
}

// Hosts puts neighbouring ranks on one host.
func ExampleHosts() {
	ccltest.Run(t, 4, where, ccltest.Hosts(2))
	// Output: [0 0 1 1]
}

// RoundRobin puts neighbouring ranks on different hosts.
func ExampleRoundRobin() {
	ccltest.Run(t, 4, where, ccltest.RoundRobin(2))
	// Output: [0 1 0 1]
}

// where prints the hosts of the ranks, by number.
func where(t testing.TB, c *ccl.Comm) {
	all := make([]int, c.Size())
	if err := ccl.AllGather(t.Context(), c, all, []int{c.Place().Node}); err != nil {
		t.Fatal(err)
	}
	if c.Rank() == 0 {
		fmt.Println(all)
	}
}

// With sets the Options of the Comm that the ranks get.
func ExampleWith() {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		if c.Rank() == 0 {
			fmt.Println(c.Name())
		}
	}, ccltest.With(ccl.Options{Name: "pipeline"}))
	// Output: pipeline
}
