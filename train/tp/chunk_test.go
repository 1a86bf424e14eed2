package tp_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/tp"
)

// The loss, the losses of the rows and the gradients of logits have the bits of one call, whatever the chunk and the
// ranks; with weights, smoothing, the z-loss, padding, and rows that do not count.
func TestChunkedCrossEntropy(t *testing.T) {
	const rows, vocabulary = 13, 11
	logits, targets, weights := random(5, rows*vocabulary), make([]int32, rows), make([]float64, rows)
	for i := range targets {
		targets[i], weights[i] = int32(i*7%10), float64(i%4)/3
	}
	targets[0], targets[6], targets[12] = tp.Ignored, tp.Ignored, tp.Ignored
	balanced, negative := make([]float64, rows), make([]float64, rows)
	balanced[1], balanced[9], negative[1], negative[9] = 1, -1, -1, -2
	none := make([]int32, rows)
	for i := range none {
		none[i] = tp.Ignored
	}
	for _, tc := range []struct {
		name    string
		targets []int32
		o       tp.LossOptions
	}{
		{"plain", targets, tp.LossOptions{}},
		{"all", targets, tp.LossOptions{Weights: weights, Words: 10, Smoothing: .1, Z: 1e-2}},
		{"divided", targets, tp.LossOptions{Divisor: 77}},
		{"none counts", none, tp.LossOptions{}},
		{"weights that cancel", targets, tp.LossOptions{Weights: balanced}},
		{"negative weights", targets, tp.LossOptions{Weights: negative}},
		{"no rows", nil, tp.LossOptions{}},
	} {
		for _, n := range []int{1, 3} {
			for _, chunk := range []int{1, 4, 13, 100} {
				t.Run(fmt.Sprint(tc.name, "/", n, " ranks/chunks of ", chunk), func(t *testing.T) {
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
						rows := len(tc.targets)
						lo, hi := data.Range(vocabulary, c.Rank(), n)
						var part []float64
						for i := range rows {
							part = append(part, logits[i*vocabulary+lo:i*vocabulary+hi]...)
						}
						g, o := &tp.Group{Comm: c}, tc.o
						o.Losses = make([]float64, rows)
						d := make([]float64, len(part))
						want, err := tp.RowsCrossEntropy(t.Context(), g, d, part, tc.targets, lo, o)
						require.NoError(t, err)
						losses, got := o.Losses, make([]float64, len(d))
						o.Losses = make([]float64, rows)
						w := hi - lo
						h := tp.Head[float64]{Width: w, Chunk: chunk,
							Logits: func(lo, hi int, x []float64) error {
								require.LessOrEqual(t, hi-lo, chunk)
								require.Equal(t, len(part[lo*w:hi*w]), copy(x, part[lo*w:hi*w]))
								return nil
							},
							Grad: func(lo, hi int, x []float64) error {
								require.Equal(t, len(x), copy(got[lo*w:hi*w], x))
								return nil
							}}
						loss, err := tp.ChunkedCrossEntropy(t.Context(), g, h, tc.targets, lo, o)
						require.NoError(t, err)
						require.Equal(t, want, loss)
						require.Equal(t, d, got)
						require.Equal(t, losses, o.Losses)
						h.Grad = nil
						loss, err = tp.ChunkedCrossEntropy(t.Context(), g, h, tc.targets, lo, o)
						require.NoError(t, err)
						require.Equal(t, want, loss)
					})
				})
			}
		}
	}
}

// What it allocates is the logits of a chunk, and not those of all rows: 256 KB here, of 32 MB.
func TestChunkedMemory(t *testing.T) {
	const rows, vocabulary, chunk = 2048, 4096, 16
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		targets := make([]int32, rows)
		h := tp.Head[float32]{Width: vocabulary, Chunk: chunk,
			Logits: func(_, _ int, x []float32) error { clear(x); return nil },
			Grad:   func(_, _ int, _ []float32) error { return nil }}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tp.ChunkedCrossEntropy(t.Context(), &tp.Group{Comm: c}, h, targets, 0, tp.LossOptions{})
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*4*chunk*vocabulary))
		require.GreaterOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(4*chunk*vocabulary))
	})
}

// What is wrong on one rank is told to all.
func TestChunkedRefuses(t *testing.T) {
	targets := []int32{0, 1, 2}
	fine := func(_, _ int, x []float32) error { clear(x); return nil }
	for want, tc := range map[string]struct {
		h       tp.Head[float32]
		targets []int32
		o       tp.LossOptions
	}{
		"a Head 2 wide, a Chunk of 0":              {tp.Head[float32]{Width: 2, Logits: fine}, targets, tp.LossOptions{}},
		"a Chunk of 1, Logits false":               {tp.Head[float32]{Width: 2, Chunk: 1}, targets, tp.LossOptions{}},
		"2 weights and 0 losses for 3 targets":     {tp.Head[float32]{Width: 2, Chunk: 1, Logits: fine}, targets, tp.LossOptions{Weights: []float64{1, 2}}},
		"rows 0 to 1: no memory":                   {tp.Head[float32]{Width: 2, Chunk: 1, Logits: func(_, _ int, _ []float32) error { return errors.New("no memory") }}, targets, tp.LossOptions{}},
		"rows 0 to 1: no gradient":                 {tp.Head[float32]{Width: 2, Chunk: 1, Logits: fine, Grad: func(_, _ int, _ []float32) error { return errors.New("no gradient") }}, targets, tp.LossOptions{}},
		"rank 1":                                   {tp.Head[float32]{Width: 2, Chunk: 2, Logits: fine}, targets, tp.LossOptions{}},
		"ranks differ in their targets or weights": {tp.Head[float32]{Width: 2, Chunk: 1, Logits: fine}, targets[:2], tp.LossOptions{}},
	} {
		t.Run(want, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				c = ccltest.Split(t, c, 0, c.Rank())
				h, targets, o := tp.Head[float32]{Width: 2, Chunk: 1, Logits: fine, Grad: fine}, targets, tp.LossOptions{}
				if c.Rank() == 1 {
					h, targets, o = tc.h, tc.targets, tc.o
				}
				_, err := tp.ChunkedCrossEntropy(t.Context(), &tp.Group{Comm: c}, h, targets, 2*c.Rank(), o)
				require.ErrorContains(t, err, want)
			})
		})
	}
}

// Chunks that differ are told where each is longer than the rows, too, and what Grad says of the last chunk to the next
// call of ranks that have ended theirs.
func TestChunkedTold(t *testing.T) {
	targets := []int32{0, 1, 2}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		h := tp.Head[float32]{Width: 2, Chunk: 3 + c.Rank(), Logits: func(_, _ int, x []float32) error { clear(x); return nil }}
		own := ccltest.Split(t, c, 0, c.Rank())
		_, err := tp.ChunkedCrossEntropy(t.Context(), &tp.Group{Comm: own}, h, targets, 2*c.Rank(), tp.LossOptions{})
		require.ErrorContains(t, err, "ranks differ in their targets or weights")
		if h.Chunk = 3; c.Rank() == 1 {
			h.Grad = func(_, _ int, _ []float32) error { return errors.New("no gradient") }
		}
		own = ccltest.Split(t, c, 1, c.Rank())
		_, err = tp.ChunkedCrossEntropy(t.Context(), &tp.Group{Comm: own}, h, targets, 2*c.Rank(), tp.LossOptions{})
		if c.Rank() == 0 && err == nil {
			_, err = tp.ChunkedCrossEntropy(t.Context(), &tp.Group{Comm: own}, h, targets, 2*c.Rank(), tp.LossOptions{})
		}
		require.ErrorContains(t, err, "rows 0 to 3: no gradient")
	})
}
