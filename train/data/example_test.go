package data_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/data"
)

// ranks runs f as n ranks of this process. A program starts with ccl.Join in its place.
func ranks(n int, f func(c *ccl.Comm) error) {
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

// Ten items on three ranks: the parts differ by at most one.
func ExampleRange() {
	for r := range 3 {
		lo, hi := data.Range(10, r, 3)
		fmt.Println(r, lo, hi)
	}
	// Output:
	// 0 0 4
	// 1 4 7
	// 2 7 10
}

// Two replicas go through the same epoch and never see the same item. A run that was stopped after position 1 goes on.
func ExampleSampler() {
	for rank := range 2 {
		s := data.Sampler{N: 8, Rank: rank, Size: 2, Seed: 1}
		fmt.Print("rank ", rank, ":")
		for _, item := range s.Epoch(0, 0) {
			fmt.Print(" ", item)
		}
		fmt.Print("; resumed:")
		for _, item := range s.Epoch(0, 2) {
			fmt.Print(" ", item)
		}
		fmt.Println()
	}
	// Output:
	// rank 0: 6 0 1 7; resumed: 1 7
	// rank 1: 5 4 3 2; resumed: 3 2
}

// One rank reads the file, all have it.
func ExampleOnRoot() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		text, err := data.OnRoot(ctx, c, 0, func() ([]byte, error) { return []byte("to be"), nil }) // os.ReadFile
		if c.Rank() == 2 {
			fmt.Printf("%s\n", text)
		}
		return err
	})
	// Output: to be
}

// Ranks 0 and 2 read; ranks 1 and 3 get theirs from them.
func ExampleReaders() {
	ctx := context.Background()
	ranks(4, func(c *ccl.Comm) error {
		mine, err := data.Readers(ctx, c, 2, func(rank int) ([]int, error) { return []int{rank, rank * rank}, nil })
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return err
	})
	// Output: [3 9]
}
