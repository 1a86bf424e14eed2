package ccl_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// OnCall gets every call, blocking, queued or failed, once.
func TestOnCall(t *testing.T) {
	var mu sync.Mutex
	seen := map[int][]ccl.Observation{}
	options := func(rank int) *ccl.Options {
		return &ccl.Options{OnCall: func(o ccl.Observation) {
			mu.Lock()
			defer mu.Unlock()
			seen[rank] = append(seen[rank], o)
		}}
	}
	world(t, 2, nil, options, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x := make([]float32, 5)
		require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Max))
		require.NoError(t, c.On(nil).Broadcast(ccl.BufOf(x), 1).Wait(ctx))
		if c.Rank() == 0 {
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			wants(t, ccl.Barrier(soon, c), ccl.ErrTimeout)
		} else {
			<-c.Done()
		}
	})
	require.Len(t, seen[0], 3)
	require.Len(t, seen[1], 2)
	for i, want := range []string{"AllReduce #1 float x 5 max", "Broadcast #2 float x 5 root 1", "Barrier #3"} {
		o := seen[0][i]
		assert.Equal(t, want, o.Call.String())
		assert.Equal(t, "world", o.Comm)
		assert.Positive(t, o.Took)
		assert.Equal(t, []int{20, 20, 0}[i], o.Bytes)
		if i < 2 {
			assert.NoError(t, o.Err)
			assert.Equal(t, ccl.Complete, o.Call.State)
		} else {
			e := wants(t, o.Err, ccl.ErrTimeout)
			assert.Equal(t, "Barrier", e.Op)
			assert.Equal(t, "Barrier #3", callSite.ReplaceAllString(e.Mine.String(), "")) // the place is known if it had waited for long
			assert.Equal(t, ccl.Failed, o.Call.State)
		}
	}
}

// OnCall gets the calls that no engine makes, too.
func TestOnCallOfOwnCalls(t *testing.T) {
	var mu sync.Mutex
	seen := map[int][]string{}
	options := func(rank int) *ccl.Options {
		return &ccl.Options{OnCall: func(o ccl.Observation) {
			mu.Lock()
			defer mu.Unlock()
			seen[rank] = append(seen[rank], fmt.Sprint(o.Comm, " ", o.Call.Kind, " #", o.Call.Seq, " ", o.Call.State, " ", o.Err))
		}}
	}
	world(t, 2, nil, options, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.Split(ctx, 0, c.Rank())
		require.NoError(t, err)
		require.NoError(t, ccl.MonitoredBarrier(ctx, part))
		require.NoError(t, part.Close())
	})
	for r := range 2 {
		want := []string{"world Split #1 complete <nil>", "world/0 MonitoredBarrier #1 complete <nil>"}
		require.Equal(t, want, seen[r], "rank %d", r)
	}
}

// While runtime/trace takes a trace, calls are regions of it.
func TestCallsAreRegions(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, trace.Start(&b))
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) { works(ctx, t, c) })
	trace.Stop()
	assert.Contains(t, b.String(), "ccl.AllReduce")
}

// With GOCCL_PPROF=1 a profile says which call a goroutine is in.
func TestCallsAreLabelled(t *testing.T) {
	t.Setenv("GOCCL_PPROF", "1")
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 1 {
			until(t, "no label", func() bool {
				var b bytes.Buffer
				require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
				return bytes.Contains(b.Bytes(), []byte(`"ccl":"Barrier"`)) && bytes.Contains(b.Bytes(), []byte(`"ccl comm":"world"`))
			})
		}
		assert.NoError(t, ccl.Barrier(ctx, c))
	})
}
