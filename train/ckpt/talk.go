package ckpt

import (
	"context"
	"encoding/json"

	"github.com/goccl/goccl/ccl"
)

// toRoot collects a value from each rank, at rank 0.
func toRoot[T any](ctx context.Context, c *ccl.Comm, v T) ([]T, error) {
	mine, err := json.Marshal(v) // of a type that has no such error
	if err != nil {
		return nil, err
	}
	counts := make([]int, c.Size())
	if err := ccl.AllGather(ctx, c, counts, []int{len(mine)}); err != nil {
		return nil, err
	}
	var all []byte
	if c.Rank() == 0 {
		n := 0
		for _, k := range counts {
			n += k
		}
		all = make([]byte, n)
	}
	if err := ccl.GatherV(ctx, c, all, counts, mine, 0); err != nil || c.Rank() != 0 {
		return nil, err
	}
	out := make([]T, len(counts))
	for r, k := range counts {
		if err := json.Unmarshal(all[:k], &out[r]); err != nil {
			return nil, err
		}
		all = all[k:]
	}
	return out, nil
}

// fromRoot is rank 0's value.
func fromRoot[T any](ctx context.Context, c *ccl.Comm, v T) (got T, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return got, err
	}
	if text, err = broadcast(ctx, c, text); err != nil {
		return got, err
	}
	return got, json.Unmarshal(text, &got)
}

// broadcast gives rank 0's text to all.
func broadcast(ctx context.Context, c *ccl.Comm, text []byte) ([]byte, error) {
	n := []int{len(text)}
	if err := ccl.Broadcast(ctx, c, n, 0); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		text = make([]byte, n[0])
	}
	return text, ccl.Broadcast(ctx, c, text, 0)
}
