package ordered

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of one who sets a flag and then looks whether all is closed, and one who closes and then looks at the flag, one
// sees the other.
func TestFlagMeetsClose(t *testing.T) {
	for _, name := range []string{"fence", "none"} {
		t.Run(name, func(t *testing.T) {
			if name == "fence" && !registerFence() {
				t.Skip("no membarrier(2) here")
			}
			before := fences.Swap(name == "fence")
			defer fences.Store(before)
			const rounds = 20_000
			var busy [rounds]Flag
			var closed, sawClosed, sawBusy [rounds]atomic.Bool
			var at atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range rounds {
					for at.Load() < int64(i) {
					}
					busy[i].Set()
					sawClosed[i].Store(closed[i].Load())
				}
			}()
			for i := range rounds {
				at.Store(int64(i))
				closed[i].Store(true)
				Heavy()
				sawBusy[i].Store(busy[i].Load())
			}
			<-done
			for i := range rounds {
				require.True(t, sawClosed[i].Load() || sawBusy[i].Load(), "round %d", i)
			}
		})
	}
}
