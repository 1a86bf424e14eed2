package ckpt

import (
	"context"
	"encoding/json"
	"errors"

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
	list, _, err = textToRoot(ctx, c, encode(v), false)
	return list, err
}

// textToRoot collects text from each rank, at rank 0. Whether any rank has more, all ranks hear.
func textToRoot(ctx context.Context, c *ccl.Comm, mine []byte, more bool) (list [][]byte, anyMore bool, err error) {
	counts, own := make([]int, c.Size()), []int{len(mine) << 1}
	if more {
		own[0]++
	}
	if err := ccl.AllGather(ctx, c, counts, own); err != nil {
		return nil, false, err
	}
	n := 0
	for r, k := range counts {
		anyMore = anyMore || k&1 != 0
		counts[r] = k >> 1
		n += counts[r]
	}
	var all []byte
	if c.Rank() == 0 {
		all = make([]byte, n)
	}
	if err := ccl.GatherV(ctx, c, all, counts, mine, 0); err != nil || c.Rank() != 0 {
		return nil, anyMore, err
	}
	for _, k := range counts {
		list, all = append(list, all[:k:k]), all[k:]
	}
	return list, anyMore, nil
}

// atOnce is about how much text of what all ranks hold, or of an index, is in memory at once.
const atOnce = 4 << 20

// collect brings the pieces of all ranks to rank 0, some at a time, so that it has each name once,
// however many ranks have it. bad is what is wrong with what came, which rank 0 tells the others.
func collect(ctx context.Context, c *ccl.Comm, mine []piece, limit int) (held [][]piece, bad, err error) {
	known := map[string]string{}
	if c.Rank() == 0 {
		held = make([][]piece, c.Size())
		held[0] = mine
		for i := range mine {
			known[mine[i].Name] = mine[i].Name
		}
		mine = nil // what is here is not sent
	}
	for more := true; more; {
		some := []byte("[")
		for len(mine) > 0 && len(some) < max(limit/c.Size(), 1) {
			if len(some) > 1 {
				some = append(some, ',')
			}
			some, mine = append(some, encode(&mine[0])...), mine[1:]
		}
		list, anyMore, err := textToRoot(ctx, c, append(some, ']'), len(mine) > 0)
		if err != nil {
			return nil, nil, err
		}
		more = anyMore
		for r, text := range list {
			ps, err := decode[[]piece](text)
			bad = errors.Join(bad, err)
			for i := range ps {
				name, ok := known[ps[i].Name]
				if !ok {
					name = ps[i].Name
					known[name] = name
				}
				ps[i].Name = name
			}
			held[r] = append(held[r], ps...)
		}
	}
	return held, bad, nil
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
