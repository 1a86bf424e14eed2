package tcp

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReceivedAhead receives in pieces of other sizes than those that are sent, small and large ones in turn. A Wait knows of what
// has been received ahead.
func TestReceivedAhead(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		two := make([]byte, 2)
		require.NoError(t, sendAll(a, []byte("abc")))
		require.NoError(t, recvAll(b, two))
		waitFor(b, time.Hour, false)
		require.NoError(t, recvAll(b, two[:1]))
		require.Equal(t, "cb", string(two))

		data := pattern(9, 200<<10)
		var wg sync.WaitGroup
		wg.Go(func() {
			assert.NoError(t, sendAll(a, data))
			a.Close()
		})
		sizes := []int{1, 7, 96, 160, 4607, 4608, 4609, 20000}
		got := make([]byte, len(data))
		for i, rest := 0, got; len(rest) > 0; i++ {
			waitFor(b, time.Hour, false)
			ask := rest[:min(len(rest), sizes[i%len(sizes)])]
			var n int
			var err error
			if at := len(ask) / 3; at > 0 && i%3 > 0 {
				n, err = b.TryRecvBoth(ask[:at], ask[at:])
			} else {
				n, err = b.TryRecv(ask)
			}
			require.NoError(t, err)
			rest = rest[n:]
		}
		wg.Wait()
		require.True(t, bytes.Equal(data, got))
		_, err := recvError(b)
		require.ErrorIs(t, err, io.EOF)
	})
}
