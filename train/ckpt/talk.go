package ckpt

import (
	"context"
	"encoding/json"

	"github.com/goccl/goccl/ccl"
)

// What ranks tell each other is decoded where an error becomes that of all of them.
func decode[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

func encode(v any) []byte {
	text, _ := json.Marshal(v) // of types of this package that have no error
	return text
}

// toRoot collects a value from each rank, at rank 0.
func toRoot(ctx context.Context, c *ccl.Comm, v any) (list [][]byte, err error) {
	mine := encode(v)
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
	for _, k := range counts {
		list, all = append(list, all[:k:k]), all[k:]
	}
	return list, nil
}

// toEach gives each rank its value of rank 0's list.
func toEach[T any](ctx context.Context, c *ccl.Comm, list []T) ([]byte, error) {
	counts := make([]int, c.Size())
	var all []byte
	if c.Rank() == 0 {
		for r, v := range list {
			text := encode(v)
			counts[r], all = len(text), append(all, text...)
		}
	}
	if err := ccl.Broadcast(ctx, c, counts, 0); err != nil {
		return nil, err
	}
	mine := make([]byte, counts[c.Rank()])
	return mine, ccl.ScatterV(ctx, c, mine, all, counts, 0)
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
