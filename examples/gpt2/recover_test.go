//go:build xla && cgo && linux

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
)

// A rank is killed, before there is a checkpoint and after: the others go on from the last one, and end as a run that lost none.
func TestRecover(t *testing.T) {
	small := []string{"-layers", "1", "-rows", "6", "-context", "8", "-log", "1"}
	want := losses(t, 1, append(small, "-steps", "6")...)
	for _, tc := range []struct {
		name, args string
		call       int // of the rank's calls, at which it is killed
		say        string
	}{
		{"before a checkpoint", "-share", 15, "yet: beginning again"},
		{"ZeRO 2", "-share -zero 2", 120, "resumed from step "}, // step 4 has waited for the checkpoint of step 2
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				args := append([]string{"-preset", "tiny", "-lr", "3e-3", "-plugin", xlatest.Path(t), "-options", "cpu_device_count=1", "-flags", quick,
					"-steps", "6", "-save", dir, "-every", "2", "-recover"}, small...)
				cfg, err := parse(append(args, strings.Fields(tc.args)...), io.Discard)
				require.NoError(t, err)
				var out bytes.Buffer
				r := &run{out: &out, in: strings.NewReader("")}
				left, err := r.train(t.Context(), c, cfg)
				if c.Rank() == 1 { // which is gone
					return
				}
				require.NoError(t, err)
				require.Equal(t, 2, left.Size())
				require.NoError(t, left.Close())
				require.InDelta(t, want[5], r.loop.Losses[len(r.loop.Losses)-1], 1e-5)
				if c.Rank() == 0 {
					t.Log(out.String())
					require.Contains(t, out.String(), "rank 1")
					require.Contains(t, out.String(), "going on with 2 rank(s) after ")
					require.Contains(t, out.String(), tc.say)
					require.Contains(t, out.String(), "saved step 6")
				}
			}, ccltest.Kill(1, tc.call), ccltest.Deadline(3*time.Minute))
		})
	}
}
