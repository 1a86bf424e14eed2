package data_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
)

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

// Two replicas go through the same epoch and never see the same item. A run that was stopped after 4 of 9 items goes on with
// one replica.
func ExampleSampler() {
	show := func(rank, size, consumed int) {
		s := data.Sampler{N: 9, Rank: rank, Size: size, Seed: 1}
		items, err := s.Epoch(0, consumed)
		if err != nil {
			fmt.Println(err)
			return
		}
		for consumed, item := range items {
			fmt.Print(" ", item, " (", consumed, ")")
		}
		fmt.Println()
	}
	fmt.Print("rank 0:")
	show(0, 2, 0)
	fmt.Print("rank 1:")
	show(1, 2, 0)
	fmt.Print("alone from 4:")
	show(0, 1, 4)
	// Output:
	// rank 0: 1 (2) 2 (4) 0 (6) 7 (8)
	// rank 1: 6 (2) 5 (4) 4 (6) 8 (8)
	// alone from 4: 0 (5) 4 (6) 7 (7) 8 (8) 3 (9)
}

// One rank reads the file, all have it.
func ExampleOnRoot() {
	ctx := context.Background()
	ccltest.Example(3, func(c *ccl.Comm) error {
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
	ccltest.Example(4, func(c *ccl.Comm) error {
		mine, err := data.Readers(ctx, c, 2, func(rank int) ([]int, error) { return []int{rank, rank * rank}, nil })
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return err
	})
	// Output: [3 9]
}

// Three of four draws are of the first source, in the order of its epochs, on two ranks. Rank 0 goes on alone after six.
func ExampleMixture() {
	m := data.Mixture{Sources: []data.Source{{N: 5, Weight: 3}, {N: 100, Weight: 1}}, Size: 2, Seed: 1}
	show := func(m data.Mixture, from, to int) {
		draws, err := m.From(from)
		if err != nil {
			fmt.Println(err)
			return
		}
		for consumed, d := range draws {
			if fmt.Printf(" %d:%d", d.Source, d.Item); consumed >= to {
				break
			}
		}
		fmt.Println()
	}
	fmt.Print("rank 0:")
	show(m, 0, 6)
	m.Rank = 1
	fmt.Print("rank 1:")
	show(m, 0, 6)
	m.Rank, m.Size = 0, 1
	fmt.Print("alone from 6:")
	show(m, 6, 12)
	fmt.Println(m.Shares(), "of 65,536")
	// Output:
	// rank 0: 0:3 0:1 0:2
	// rank 1: 0:0 0:4 0:4
	// alone from 6: 1:76 1:78 0:3 1:99 0:0 0:1
	// [49152 16384] of 65,536
}
