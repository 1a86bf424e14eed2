//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// TestProductOrder: calls on host memory and on a device's, issued in turn on two queues of a Comm, are in that order on all ranks.
func TestProductOrder(t *testing.T) {
	wellOnEach(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) {
		const rounds = 100
		x := r.mem(1)
		here := []int64{1}
		var err error
		for k := range rounds {
			first := r.c.On(nil).AllReduce(ccl.BufOf(here), ccl.InPlace(), ccl.Max)
			second := r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
			third := r.c.On(nil).Barrier()
			if k%10 == 9 {
				err = errors.Join(err, first.Wait(ctx), second.Wait(ctx), third.Wait(ctx))
			}
		}
		if err == nil && here[0] != 1 {
			err = fmt.Errorf("%d on the host", here[0])
		}
		require.NoError(t, err)
	})
}
