//go:build linux

package cpu

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

// A rank says that it sleeps, is rung by the rank that it waits for, and by no other; a rank that fails the Comm rings all.
func TestBell(t *testing.T) {
	c := twoOfAHost(t)
	w := &plane.Waiter{}
	require.True(t, c[0].rank.Standing.CanPark(w, 1))
	require.False(t, c[0].rank.Standing.CanPark(&plane.Waiter{Remote: true}, 1), "what comes over TCP rings nobody")
	c[0].rank.Park(t.Context(), w, 1, 0) // says that it sleeps, and returns for a last look
	require.EqualValues(t, 1, c[0].rank.Share.Local.Sleepers().Load())
	require.EqualValues(t, plane.BellFrom+1, c[0].rank.Share.Local.Bell(0).Load())

	c[0].rank.Wake()
	require.EqualValues(t, plane.BellFrom+1, c[1].rank.Share.Local.Bell(0).Load(), "a rank does not ring itself")
	c[1].rank.Wake()
	require.Zero(t, c[1].rank.Share.Local.Bell(0).Load(), "one ring is claimed once")
	c[0].rank.Park(t.Context(), w, 1, 0) // the word was taken: it sets the bell anew, and drops the old ring
	require.EqualValues(t, plane.BellFrom+1, c[1].rank.Share.Local.Bell(0).Load())

	done := make(chan bool)
	go func() {
		c[0].rank.Park(context.Background(), w, 1, 0)
		close(done)
	}()
	require.Eventually(t, func() bool { return c[1].rank.Share.Local.Rests(0).Load() == math.MaxInt64 }, 10*time.Second, time.Millisecond, "it says that it sleeps until it is rung")
	c[1].rank.Wake()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not rung")
	}
	require.Zero(t, c[1].rank.Share.Local.Rests(0).Load())
	c[0].rank.Unpark()
	require.Zero(t, c[0].rank.Share.Local.Sleepers().Load())
	require.Zero(t, c[0].rank.Share.Local.Bell(0).Load())

	w = &plane.Waiter{Several: true}
	c[0].rank.Park(t.Context(), w, 1, 0)
	require.EqualValues(t, plane.BellAnyone, c[0].rank.Share.Local.Bell(0).Load())
	require.Equal(t, []int{0}, c[1].rank.Share.ClaimSleepers())
	require.Empty(t, c[1].rank.Share.ClaimSleepers(), "claimed")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c[0].rank.Park(ctx, w, 1, 0)
	c[0].rank.Park(ctx, w, 1, 0) // ends with its context
	c[0].rank.Unpark()

	// A call that has slept for long ends with its context, too, and when its own process rouses it.
	for _, rouse := range []bool{false, true} {
		w = &plane.Waiter{Rests: plane.ShortRests}
		ctx, cancel = context.WithCancel(t.Context())
		c[0].rank.Park(ctx, w, 1, 0)
		done = make(chan bool)
		go func() {
			c[0].rank.Park(ctx, w, 1, 0)
			close(done)
		}()
		if rouse {
			c[0].rank.WakeCall()
		} else {
			cancel()
		}
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("it was not roused")
		}
		c[0].rank.Unpark()
		cancel()
	}
}

// A call that has waited for long sleeps until it is rung by the rank that it waits for: it does not nap until it finds
// that the rank has come.
func TestLongWaitIsRung(t *testing.T) {
	c := twoOfAHost(t)
	message := func(kind call.Kind, peer int32, dst, src []byte) *call.Call {
		k := &call.Call{Head: op.Head{Record: call.Record{Kind: kind, Count: 8, Root: peer}}, Dst: dst, Src: src, Elem: 1}
		k.Seal()
		return k
	}
	for round := range 5 {
		want, got := bytesFrom(round, 8), make([]byte, 8)
		done := make(chan *call.Fault, 1)
		go func() { done <- c[0].one(context.Background(), message(call.Recv, 1, got, nil)) }()
		require.Eventually(t, func() bool { return c[1].rank.Share.Local.Bell(0).Load() == plane.BellFrom+1 }, 20*time.Second, time.Millisecond, "it does not sleep")
		require.Nil(t, c[1].one(context.Background(), message(call.Send, 0, nil, want)))
		select {
		case f := <-done:
			require.Nil(t, f)
		case <-time.After(20 * time.Second):
			t.Fatal("it was not woken")
		}
		require.Equal(t, want, got)
		require.Zero(t, c[1].rank.Share.Local.Sleepers().Load())
	}
}

// A call on a Stream that gives way to other processes gives way to the goroutines of its own as well: where there are as
// many such calls as Go has processors, nothing else of the program would run meanwhile.
func TestQueuedCallGivesWay(t *testing.T) {
	c := twoOfAHost(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c[0].rank.Current.Begin(&call.Call{Queued: true}, 0, false)
	var ran atomic.Bool
	go ran.Store(true)
	for lap := 1; !ran.Load(); lap++ {
		require.Less(t, lap, 1000)
		c[0].rank.GiveWay(lap)
	}
}

// A call on a Stream does not sleep in the kernel where that could keep the last of Go's processors from the program: Go
// notices only after up to 20 ms that it may have it.
func TestQueuedCallKeepsNoProcessor(t *testing.T) {
	c := twoOfAHost(t)
	require.True(t, c[0].rank.Site.Here.Host.Shared())
	for _, tc := range []struct {
		processors int
		queued     bool
		parks      bool
	}{
		{1, true, false}, {1, false, true}, {2, true, true}, {2, false, true},
	} {
		before := runtime.GOMAXPROCS(tc.processors)
		c[0].rank.Current.Begin(&call.Call{Queued: tc.queued}, 0, false)
		parks := c[0].rank.Standing.CanPark(&plane.Waiter{}, 1)
		runtime.GOMAXPROCS(before)
		require.Equal(t, tc.parks, parks, "%+v", tc)
	}
}
