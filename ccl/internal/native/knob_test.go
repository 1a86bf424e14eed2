//go:build (nccl || rccl) && cgo && linux

package native

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
)

// TestKnobs: the habits that the fake library is given are there: a communicator that does not block shows each of them, and does not
// without. The engine, whose communicators block, is to show none: see TestHabits.
func TestKnobs(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		r := world(t, v, 1)[0] // for its stream, and to have the library loaded
		m := r.memory(t)
		at, _ := m.Ptr()
		lib := v.fake(t)
		ready := func(t *testing.T, a *cside.Async) {
			require.Eventually(t, func() bool { return a.State() != cside.InProgress }, limit, 50*time.Microsecond)
			require.Zero(t, a.State())
		}
		made := func(t *testing.T) *cside.Async {
			a, _ := lib.Async()
			ready(t, a)
			return a
		}
		for _, tc := range []struct {
			knob string
			see  func(t *testing.T) int
			want map[string]int // by the value of the knob
		}{
			{"FAKE_NCCL_ASYNC_ALL", func(t *testing.T) int { // threads that five calls make
				a, before := made(t), lib.Threads()
				for range 5 {
					a.Call(r.handle(), at)
					ready(t, a)
				}
				made := lib.Threads() - before
				require.Zero(t, a.Abort())
				return made
			}, map[string]int{"": 5, "1": 5, "0": 1}},
			{"FAKE_NCCL_HIDE", func(t *testing.T) int { // what a call under way says
				a := made(t)
				said := a.Call(r.handle(), at)
				ready(t, a)
				require.Zero(t, a.Abort())
				return said
			}, map[string]int{"": cside.InProgress, "p2p": cside.InProgress, "coll": 0}},
			{"FAKE_NCCL_INIT_SYNC", func(t *testing.T) int { // what a start says
				a, said := lib.Async()
				ready(t, a)
				require.Zero(t, a.Abort())
				return said
			}, map[string]int{"": cside.InProgress, "0": cside.InProgress, "1": 0}},
			{"FAKE_NCCL_GAE_JOINS", func(t *testing.T) int { // 1: it is a violation that two threads ask for one call
				a, before := made(t), lib.Violations()
				t.Setenv("FAKE_NCCL_GAE_US", "500000")
				a.Call(r.handle(), at)
				asked := make(chan int, 1)
				go func() { asked <- a.State() }()
				require.Eventually(t, func() bool { return lib.Asking() > 0 }, limit, time.Millisecond)
				t.Setenv("FAKE_NCCL_GAE_US", "0")
				for len(asked) == 0 {
					a.State()
				}
				ready(t, a)
				require.Zero(t, a.Abort())
				return min(lib.Violations()-before, 1)
			}, map[string]int{"": 1, "1": 1, "0": 0}},
			{"FAKE_NCCL_JOB", func(t *testing.T) int { // violations where another thread ends a call
				a, before := made(t), lib.Violations()
				t.Setenv("FAKE_NCCL_SETTLE_US", "300000")
				called := make(chan struct{})
				go func() {
					runtime.LockOSThread() // never unlocked: no other goroutine has this thread
					a.Call(r.handle(), at)
					close(called)
				}()
				<-called
				require.Equal(t, cside.InProgress, a.State())
				require.Zero(t, a.Abort())
				return lib.Violations() - before
			}, map[string]int{"": 0, "thread": 1}},
		} {
			for value, want := range tc.want {
				t.Run(tc.knob+"="+value, func(t *testing.T) {
					t.Setenv(tc.knob, value)
					require.Equal(t, want, tc.see(t))
				})
			}
		}
		require.NoError(t, r.wait(within(t)))
		require.NoError(t, m.Free())
	})
}
