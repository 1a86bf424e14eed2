package ckpt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
)

// Three ranks save a vector of which each has a part. Two ranks go on with it, and it is exported for other programs.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ckpt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	part := func(c *ccl.Comm) []ckpt.Tensor {
		lo, hi := 10*c.Rank()/c.Size(), 10*(c.Rank()+1)/c.Size()
		return []ckpt.Tensor{{Name: "w", Shape: []int{2, 5}, Lo: lo, Hi: hi, Data: make([]float32, hi-lo)}}
	}
	ccltest.Example(3, func(c *ccl.Comm) error {
		ts := part(c)
		for i, w := 0, ts[0].Data.([]float32); i < len(w); i++ {
			w[i] = float32(ts[0].Lo + i)
		}
		return ckpt.Save(ctx, c, ckpt.Step(dir, 1000), map[string]int{"step": 1000}, ts)
	})
	ccltest.Example(2, func(c *ccl.Comm) error {
		latest, _, err := ckpt.Latest(ctx, c, dir)
		if err != nil {
			return err
		}
		ts, state := part(c), map[string]int{}
		if err := ckpt.Load(ctx, c, latest, &state, ts); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println("step", state["step"], "rank 1 of 2 has", ts[0].Data)
		}
		return nil
	})
	err = ckpt.Export(ckpt.Step(dir, 1000), filepath.Join(dir, "hf"), 5<<30, func(name string, shape []int) (string, []int) {
		return "model." + name + ".weight", shape
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, d := range []string{ckpt.Step(dir, 1000), filepath.Join(dir, "hf")} {
		files, err := os.ReadDir(d)
		if err != nil {
			fmt.Println(err)
		}
		for _, f := range files {
			fmt.Println(filepath.Base(d), f.Name())
		}
	}
	// Output:
	// step 1000 rank 1 of 2 has [5 6 7 8 9]
	// step-00001000 index.json
	// step-00001000 part-00001-of-00003.safetensors
	// step-00001000 part-00002-of-00003.safetensors
	// step-00001000 part-00003-of-00003.safetensors
	// hf model.safetensors
}

// The same program begins, and goes on where it was when it is started again: errors.Is gives one answer on all ranks.
func ExampleLatest() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ckpt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	train := func(c *ccl.Comm) error {
		step, w := 0, []float32{0}
		ts := []ckpt.Tensor{{Name: "w", Shape: []int{1}, Data: w}}
		latest, passed, err := ckpt.Latest(ctx, c, dir)
		for _, p := range passed { // why a later one is not whole
			fmt.Println(p)
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
			// Begin: set the parameters.
		case err != nil:
			return err
		default:
			if err := ckpt.Load(ctx, c, latest, &step, ts); err != nil {
				return err
			}
		}
		for end := step + 5; step < end; step++ {
			w[0]++
		}
		if err := ckpt.Save(ctx, c, ckpt.Step(dir, step), step, ts); err != nil {
			return err
		}
		if c.Rank() == c.Size()-1 {
			fmt.Println("step", step, "w", w)
		}
		return ckpt.Keep(ctx, c, dir, 2)
	}
	ccltest.Example(2, train)
	ccltest.Example(3, train)
	// Output:
	// step 5 w [5]
	// step 10 w [10]
}

// A new head on an old trunk: what the checkpoint does not have stays as it is, what it has is read in another type and by
// another name, and all ranks learn what did not match.
func ExampleLoadWith() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ckpt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ccltest.Example(1, func(c *ccl.Comm) error {
		return ckpt.Save(ctx, c, ckpt.Step(dir, 1), nil, []ckpt.Tensor{
			{Name: "trunk", Shape: []int{2}, Data: []ccl.BFloat16{ccl.ToBFloat16(1.5), ccl.ToBFloat16(-2)}},
			{Name: "head", Shape: []int{1}, Data: []float32{3}}})
	})
	ccltest.Example(2, func(c *ccl.Comm) error {
		trunk, head := make([]float32, 2), []float32{0.25}
		r, err := ckpt.LoadWith(ctx, c, ckpt.Step(dir, 1), nil, []ckpt.Tensor{
			{Name: "model.trunk", Shape: []int{2}, Data: trunk}, {Name: "model.classes", Shape: []int{1}, Data: head},
		}, ckpt.LoadOptions{Convert: true, Partial: true, Rename: func(name string) string { return strings.TrimPrefix(name, "model.") }})
		if err == nil && c.Rank() == 1 {
			fmt.Println(trunk, head, "missing", r.Missing, "unused", r.Unused)
		}
		return err
	})
	// Output: [1.5 -2] [0.25] missing [model.classes] unused [head]
}

// Each rank goes on with its own random numbers, and all with the job's step.
func ExampleState() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ckpt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	next := make([]uint64, 2)
	ccltest.Example(2, func(c *ccl.Comm) error {
		rng := rand.NewPCG(1, uint64(c.Rank()))
		now, err := rng.MarshalBinary()
		next[c.Rank()] = rng.Uint64()
		if err != nil {
			return err
		}
		return ckpt.Save(ctx, c, ckpt.Step(dir, 10), ckpt.State{Job: 10, Rank: now}, nil)
	})
	ccltest.Example(2, func(c *ccl.Comm) error {
		step, saved, rng := 0, []byte(nil), &rand.PCG{}
		if err := ckpt.Load(ctx, c, ckpt.Step(dir, 10), ckpt.State{Job: &step, Rank: &saved}, nil); err != nil {
			return err
		}
		err := rng.UnmarshalBinary(saved)
		if same := rng.Uint64() == next[c.Rank()]; c.Rank() == 1 {
			fmt.Println("step", step, "the same number comes next:", same)
		}
		return err
	})
	// Output: step 10 the same number comes next: true
}
