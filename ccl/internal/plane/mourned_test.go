package plane

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of all that hear of a loss one tells, also where many hear at once, and where more are lost than are remembered.
func TestMourned(t *testing.T) {
	var m mourned
	var told [8]atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for w := range told {
				if m.first(w) {
					told[w].Add(1)
				}
			}
		})
	}
	all.Wait()
	for w := range told {
		require.EqualValues(t, 1, told[w].Load(), "rank %d", w)
	}
	require.True(t, m.first(100))
	require.False(t, m.first(100))
}
