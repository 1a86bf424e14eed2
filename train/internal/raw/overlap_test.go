package raw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// Two views overlap if they have an element in common: neither views of nothing do, nor those that lie side by side.
func TestOverlap(t *testing.T) {
	x, y := ccl.BufOf(make([]float32, 9)), ccl.BufOf(make([]ccl.BFloat16, 9))
	for name, tc := range map[string]struct {
		bufs []ccl.Buf
		i, j int
		is   bool
	}{
		"none":                 {},
		"side by side":         {[]ccl.Buf{x.From(4, 9), y, x.From(0, 4)}, 0, 0, false},
		"views of nothing":     {[]ccl.Buf{x, x.From(3, 3), {}, {}}, 0, 0, false},
		"an element in common": {[]ccl.Buf{x.From(3, 9), y, x.From(0, 4)}, 0, 2, true},
		"one within another":   {[]ccl.Buf{y, x.From(3, 4), x}, 1, 2, true},
		"the same twice":       {[]ccl.Buf{x, y.From(1, 2), y.From(1, 2)}, 1, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			var p raw.Places
			i, j, is := p.Overlap(tc.bufs)
			require.Equal(t, [2]int{tc.i, tc.j}, [2]int{i, j})
			require.Equal(t, tc.is, is)
			require.Zero(t, testing.AllocsPerRun(10, func() { p.Overlap(tc.bufs) }))
		})
	}
}
