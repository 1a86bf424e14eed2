//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// TestTimed: the device takes the time of calls, of the first, which makes connections, too; a span serves again once it was asked. Where
// the device makes no event, its stream is being captured, or the call fails, there is no time, and the call is as ever.
func TestTimed(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		t.Setenv("FAKE_DELAY_US", "1000")
		r := world(t, v, 1)[0]
		e := r.end()
		m := r.memory(t)
		at, _ := m.Ptr()
		one := op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: at, SrcAt: at}}
		for i, tc := range []struct {
			name    string
			fail    string // FAKE_FAIL
			calls   []*op.Call
			capture bool
			how     engine.How
			timed   bool
		}{
			{"no events can be made", "cudaEventCreateWithFlags:0:2", []*op.Call{&one}, false, engine.Timed, false},
			{"the first event cannot be recorded", "cudaEventRecord:1:1", []*op.Call{&one}, false, engine.Timed, false},
			{"the second event cannot be recorded", "cudaEventRecord:2:1", []*op.Call{&one}, false, engine.Timed, false},
			{"a first call", "", []*op.Call{&one}, false, engine.Connecting | engine.Timed, true},
			{"a call", "", []*op.Call{&one}, false, engine.Timed, true},
			{"a group", "", []*op.Call{&one, &one, &one}, false, engine.Timed, true},
			{"a call that is captured", "", []*op.Call{&one}, true, engine.Timed, false},
			{"again", "", []*op.Call{&one}, false, engine.Timed, true},
		} {
			t.Setenv("FAKE_FAIL", tc.fail)
			if tc.capture {
				require.NoError(t, r.stream.BeginCapture())
			}
			s, err := e.Issue(r.handle(), tc.calls, tc.how)
			require.NoError(t, err, tc.name)
			if tc.capture {
				g, err := r.stream.EndCapture()
				require.NoError(t, err, tc.name)
				require.NoError(t, g.Close())
			}
			t.Setenv("FAKE_FAIL", "")
			require.Equal(t, tc.timed, s != nil, tc.name)
			require.NoError(t, r.wait(within(t)), tc.name)
			if tc.timed {
				took, ok := s.Took()
				require.True(t, ok, tc.name)
				require.GreaterOrEqual(t, took, 2*time.Millisecond, tc.name)
				require.Less(t, took, limit, tc.name)
			}
			require.Len(t, e.spans.all, 1, "%d: %s", i, tc.name)
		}
		_, err := e.Issue(r.handle(), []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: uint64(1 << 20)}, DstAt: at, SrcAt: at}}}, engine.Timed)
		require.Error(t, err, "more than the memory has")

		t.Setenv("FAKE_DELAY_US", "0")
		first, err := e.Issue(r.handle(), []*op.Call{&one}, engine.Timed)
		require.NoError(t, err)
		second, err := e.Issue(r.handle(), []*op.Call{&one}, engine.Timed)
		require.NoError(t, err)
		require.NotSame(t, first, second)
		require.NoError(t, r.wait(within(t)))
		other, err := r.device.NewStream()
		require.NoError(t, err)
		require.NoError(t, other.BeginCapture())
		_, ok := first.Took()
		require.Equal(t, !v.queryBreaks, ok, "on HIP nothing is asked while a stream is being captured")
		g, err := other.EndCapture()
		require.NoError(t, err)
		require.NoError(t, g.Close())
		require.NoError(t, other.Close())
		require.NoError(t, m.Free())
		r.closed = true
		require.NoError(t, r.Close())
		_, ok = second.Took()
		require.False(t, ok, "after Close")
		_, err = e.Issue(r.handle(), []*op.Call{&one}, engine.Timed)
		require.ErrorIs(t, err, errClosed)
	})
}
