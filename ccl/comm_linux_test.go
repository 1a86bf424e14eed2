package ccl_test

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// holdings counts what a process can leak.
type holdings struct{ files, maps int }

func held(t *testing.T) holdings {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return holdings{len(fds), bytes.Count(maps, []byte("memfd:"))}
}

// Comms that were made, used and closed leave nothing: no goroutine (world sees to
// that), no descriptor, no mapping.
func TestNothingIsLeft(t *testing.T) {
	use := func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		x := make([]float32, 100_000)
		assert.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
		assert.NoError(t, ccl.AllToAll(ctx, c, x[:c.Size()], x[:c.Size()]))
		n, r := c.Size(), c.Rank()
		assert.NoError(t, ccl.SendRecv(ctx, c, x[:5], (r+1)%n, x[5:10], (r+n-1)%n))
		sub, err := c.Split(ctx, r%2, 0)
		if assert.NoError(t, err) {
			works(ctx, t, sub)
			assert.NoError(t, sub.Close())
		}
	}
	everywhere(t, 3, nil, use)
	runtime.GC()
	before := held(t)
	for range 50 / len(places) {
		everywhere(t, 3, nil, use)
	}
	var after holdings
	until(t, "files or mappings are left", func() bool {
		after = held(t)
		return after.files <= before.files && after.maps <= before.maps
	})
	t.Logf("before %+v, after %+v", before, after)
}
