//go:build xla && cgo && linux

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit"
)

// With -recompute the losses stay, on one rank and on two, and the program of a step needs less memory the deeper the model is.
func TestRecompute(t *testing.T) {
	for _, tc := range []struct {
		ranks int
		args  string
		delta float64
	}{{2, "-share -micro 2", 2e-5}, {1, "-bf16", 2e-3}} {
		got := losses(t, tc.ranks, append(strings.Fields(tc.args), "-recompute", "-steps", "8", "-log", "4")...)
		require.InDeltaSlice(t, torchF32[:8], got, tc.delta)
	}
	client := xlatest.Client(t)
	takes := func(args string) int64 {
		c, err := parse(strings.Fields("-preset tiny -rows 16 -context 64 -layers 4 -np 1 "+args), io.Discard)
		require.NoError(t, err)
		text, err := fit.Text(c.network(), c.training())
		require.NoError(t, err)
		p, err := client.Compile(text, nil)
		require.NoError(t, err)
		defer p.Free()
		return p.Stats().Temp
	}
	kept, again := takes(""), takes("-recompute")
	t.Logf("%d bytes of activations, %d with -recompute", kept, again)
	require.Less(t, 2*again, kept)
}
