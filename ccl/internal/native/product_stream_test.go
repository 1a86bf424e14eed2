//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/gpu"
)

// TestProductStreamClosed: a program that has synchronized a stream may close it, though no mark has told the Comm that its
// calls are done: a Wait of such a call returns nil, and the Comm goes on with other streams.
func TestProductStreamClosed(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
			x := r.mem(1)
			for range 5 {
				s, err := r.d.NewStream()
				require.NoError(t, err)
				w := r.c.On(s).AllReduce(ccl.Device(x), ccl.InPlace(), ccl.Max)
				require.NoError(t, s.Synchronize())
				require.NoError(t, s.Close())
				if err := w.Wait(ctx); err != nil {
					return err
				}
			}
			for range 5 { // ticks of the watch
				time.Sleep(10 * time.Millisecond)
				if err := r.c.Err(); err != nil {
					return err
				}
			}
			return r.sums(ctx, 3)
		}) {
			assert.NoError(t, err, "rank %d", rank)
		}
	})
}
