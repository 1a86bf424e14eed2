//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// TestConnect: a call for which the library waits inside for a rank that does not come ends with Abort, in bounded time, whether the
// library can make it come back or not; and so does what follows.
func TestConnect(t *testing.T) {
	for _, revokes := range []bool{true, false} {
		t.Run(fmt.Sprintf("revoke=%v", revokes), func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				keeps(t, v)
				t.Setenv("FAKE_NCCL_CONNECT", "hang")
				if !revokes {
					t.Setenv("FAKE_FAIL", "ncclCommRevoke:0:3")
				}
				r := world(t, v, 1)[0]
				r.closed = true
				m := r.memory(t)
				at, _ := m.Ptr()
				e := r.end()
				call := []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: at, SrcAt: at}}}
				came := make(chan error, 1)
				connect := func() error {
					_, err := e.Issue(r.handle(), call, engine.Connecting)
					return err
				}
				go func() { came <- connect() }()
				require.Eventually(t, e.inside.Load, limit, time.Millisecond)
				e.Abort()
				select {
				case err := <-came:
					require.Error(t, err)
				case <-time.After(limit):
					t.Fatal("the call has not come back")
				}
				for range 3 {
					require.ErrorIs(t, r.Issue(r.handle(), call), errAborted)
					require.ErrorIs(t, connect(), errAborted)
				}
				require.Equal(t, !revokes, e.inside.Load(), "a call that was left is inside still")
				err := e.Close()
				if revokes {
					require.NoError(t, err)
					require.NoError(t, m.Free())
				} else {
					require.ErrorContains(t, err, "a call has not returned from the library 1s after the communicator failed")
				}
				require.True(t, errors.Is(r.Issue(r.handle(), call), errClosed))
			})
		})
	}
}
