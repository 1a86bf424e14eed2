package ordered

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who sees the number sees what was written before it.
func TestStore(t *testing.T) {
	var number, next uint64
	var data [1 << 10]atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range uint64(1 << 16) {
			data[i%uint64(len(data))].Store(i + 1)
			if i%2 == 0 {
				Store(&number, i+1)
			} else {
				Post(&number, i+1, &next)
			}
		}
	}()
	for seen := uint64(0); seen < 1<<16; {
		if now := atomic.LoadUint64(&number); now != seen {
			require.Greater(t, now, seen)
			require.GreaterOrEqual(t, data[(now-1)%uint64(len(data))].Load(), now)
			seen = now
		}
	}
	<-done
	require.Zero(t, next)
}
