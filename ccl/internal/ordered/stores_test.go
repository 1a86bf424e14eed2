package ordered

import (
	"sync/atomic"
	"testing"
	"unsafe"

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

func TestCopy(t *testing.T) {
	for _, n := range []int{0, 1, 8, 1023, 1024, 1025, 4096, 100_001} {
		src, dst := make([]byte, n+3), make([]byte, n+5)
		for i := range src {
			src[i] = byte(i*7 + 1)
		}
		Copy(unsafe.Pointer(&dst[4]), unsafe.Pointer(&src[2]), n)
		require.Equal(t, src[2:n+2], dst[4:n+4])
		require.Equal(t, []byte{0, 0, 0, 0}, dst[:4])
		require.Zero(t, dst[n+4])
	}
}
