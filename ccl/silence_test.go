package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// The shortest PeerTimeout loses nobody that is well.
func TestShortPeerTimeout(t *testing.T) {
	o := &ccl.Options{PeerTimeout: time.Second}
	virtually(t, 3, []string{"a", "b", "c"}, func(int) *ccl.Options { return o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x := []int{0}
		for end := time.Now().Add(2 * time.Second); x[0] < 3; { // all have seen the end
			x[0] = 0
			if time.Now().After(end) {
				x[0] = 1
			}
			require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
			time.Sleep(10 * time.Millisecond)
		}
	})
}
