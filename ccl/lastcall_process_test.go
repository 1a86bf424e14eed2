package ccl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// stops is a context that holds up the call that is given it, once the call waits, until go on is closed. entered is called
// first.
type stops struct {
	context.Context
	looks   atomic.Int32
	entered func()
	goOn    <-chan struct{}
}

func (s *stops) Err() error {
	if s.looks.Add(1) == 2 { // the first is before the call
		s.entered()
		<-s.goOn
	}
	return s.Context.Err()
}

func init() { roles["last call"] = lastCall }

// lastCall: rank 0 ends with the world open, after a call in s that has returned nil. The other ranks know of its end before they
// have what it sent.
func lastCall(ctx context.Context, t *testing.T, use string) {
	world, err := ccl.Join(ctx, nil)
	require.NoError(t, err)
	s, err := world.Split(ctx, 0, 0)
	require.NoError(t, err)
	me, n := world.Rank(), world.Size()
	x, all := make([]int32, 1000), make([]int32, 1000*n)
	want := make([]int32, len(all))
	for i := range all {
		want[i] = int32(i / 1000)
	}
	for i := range x {
		x[i] = int32(me)
	}
	came := filepath.Join(os.Getenv("CCL_TEST_DIR"), "came")
	switch {
	case use == "a call that began" && me == 1:
		goOn := make(chan struct{})
		go func() {
			defer close(goOn)
			<-world.Done()
			time.Sleep(100 * time.Millisecond) // the same news is on its way to s, and to rank 2
		}()
		held := &stops{Context: ctx, goOn: goOn, entered: func() { assert.NoError(t, os.WriteFile(came, nil, 0o600)) }}
		require.NoError(t, ccl.AllGather(held, s, all, x))
		require.Equal(t, want, all)
	case use == "a call that began":
		for { // until rank 1 waits
			if _, err := os.Stat(came); err == nil {
				break
			}
			require.NoError(t, ctx.Err())
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, ccl.AllGather(ctx, s, all, x))
		require.Equal(t, want, all)
	case me == 0:
		require.NoError(t, ccl.Broadcast(ctx, s, x, 0))
		require.NoError(t, s.Close())
	default: // a call that comes late, on a Comm that rank 0 has closed
		select {
		case <-world.Done():
		case <-ctx.Done():
		}
		require.NoError(t, ctx.Err())
		require.ErrorIs(t, world.Err(), ccl.ErrRankLost)
		require.NoError(t, ccl.Broadcast(ctx, s, x, 0))
		require.Equal(t, want[:1000], x)
		require.NoError(t, s.Close()) // rank 2 may be later still
	}
	fmt.Printf("rank %d has it\n", me)
	if use == "a call that began" && me > 0 { // which was the last: s fails as the world did
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
		require.ErrorIs(t, s.Err(), ccl.ErrRankLost)
	}
}

// Between hosts, what a rank has returned nil for reaches the others, whatever it leaves open when its process ends: in a call
// under way, and in a call that comes later on a Comm that the rank has closed.
func TestLastCallIsDelivered(t *testing.T) {
	for _, use := range []string{"a call that began", "a call that comes later"} {
		t.Run(use, func(t *testing.T) {
			out := processes(t, 3, 3, "last call", use, "CCL_TEST_DIR="+t.TempDir(), "GOCCL_ALGO=allgather=ring")
			assert.Equal(t, 3, strings.Count(out, "has it"), out)
		})
	}
}
