//go:build xla && nccl && cgo && linux

package gomlx_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/interop/gomlx"
	"github.com/goccl/goccl/test/fake"
	"github.com/goccl/goccl/train/ddp"
)

// In place over NCCL, on a stream of a device: the fake's memory is the host's, where XLA's plugin for CPUs has its gradients. The
// parameters are those of the exchange on the host.
func TestOnXLAByNCCL(t *testing.T) {
	const child = "GOMLX_TEST_FAKE"
	path := xlatest.Path(t)
	if os.Getenv(child) == "" { // a process looks for a runtime once
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(append(os.Environ(), fake.Env(fake.Library(t))...), child+"=1", "GOMLX_NO_AUTO_INSTALL=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	var hashes []uint64
	for _, onDevice := range []bool{false, true} {
		backend := "cpu"
		if onDevice {
			backend = "nccl"
		}
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			var how *gomlx.XLA
			if onDevice {
				d, err := cuda.Local(c.Place().Local, c.Place().Locals)
				require.NoError(t, err)
				s, err := d.NewStream()
				require.NoError(t, err)
				defer s.Close()
				how = &gomlx.XLA{Device: d, Stream: s}
			}
			r := newXLARank(t, c, path, adam(), hidden(8), how)
			_, err := r.loop.RunSteps(&batches[float32]{rank: c.Rank(), n: 2}, 5)
			require.NoError(t, err)
			mine := hash(t, r.model)
			require.NoError(t, ddp.Same(context.Background(), c, mine))
			if c.Rank() == 0 {
				hashes = append(hashes, mine)
			}
			require.NoError(t, r.opt.Close())
		}, ccltest.With(ccl.Options{Backend: backend}))
	}
	require.Equal(t, hashes[0], hashes[1])
}
