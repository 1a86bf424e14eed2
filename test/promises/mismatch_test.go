//go:build linux

package promises

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// One rank makes another call than the rest: all hear of it, soon after the last has come.
func TestR4MismatchIsToldInTime(t *testing.T) {
	trials := times(3, 20)
	for _, tc := range []struct {
		what    string
		opts    []ccltest.Option
		promise time.Duration
	}{
		{"one of 4 ranks of a host makes another call: all hear of it", nil, 10 * time.Millisecond},
		{"the same, on 4 hosts", []ccltest.Option{ccltest.Hosts(4)}, 200 * time.Millisecond},
	} {
		if tc.opts != nil && !*write { // TestR4MismatchBetweenHosts
			continue
		}
		var mu sync.Mutex
		var took []time.Duration
		for range trials {
			var last time.Time
			ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, 0)
				mu.Lock()
				last = time.Now()
				mu.Unlock()
				count := 100
				if c.Rank() == 2 {
					count = 101
				}
				x := make([]float32, count)
				var err error
				for err == nil {
					err = ccl.AllReduce(t.Context(), c, x, x, ccl.Sum)
				}
				heard := time.Now()
				var e *ccl.Error
				require.True(t, errors.As(err, &e))
				require.Equal(t, ccl.ErrMismatch, e.Code, "%v", err)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, heard.Sub(last))
			}, tc.opts...)
		}
		middle, largest := spread(took)
		record(t, 4, "R4", tc.what, "≤ "+tc.promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), trials)
		asserted(t, tc.what, largest, tc.promise)
	}
}
