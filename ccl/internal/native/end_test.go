//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/engine"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
)

// soon is ten times what the end of a call that was aborted may take.
const soon = 5 * time.Second

// leaks fails the test if the fake library has more afterwards than before.
func leaks(t *testing.T, v *vendor) { Leaks(t, v.fake(t)) }

// Leaks is leaks for tests of the product.
func Leaks(t *testing.T, c cside.Library) {
	before := c.Live() // an earlier test's communicator may still be on its way out
	t.Cleanup(func() {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			for kind, n := range c.Live() {
				assert.LessOrEqual(t, n, before[kind], "%d of blocks, streams, events, graphs, communicators, operations", kind)
			}
		}, soon, time.Millisecond)
	})
}

// issueOne is an all-reduce of one int32.
func (r *rank) issueOne(m *gpu.Mem[int32]) error {
	at, _ := m.Ptr()
	return r.Issue(r.handle(), []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: at, SrcAt: at}}})
}

func (r *rank) memory(t testing.TB) *gpu.Mem[int32] {
	m, err := gpu.Alloc[int32](r.device, 1)
	require.NoError(t, err)
	require.NoError(t, m.Put([]int32{1}))
	return m
}

// TestFailures: what goes wrong inside the library arrives, a hanging stream is let go by Abort, nothing is left.
func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name, knob, value string
		wait              time.Duration
		err               string // of Err; "" if the library notices nothing
	}{
		{"asynchronous error", "FAKE_NCCL_ASYNC", "3:1", 3 * time.Second, "unhandled cuda error: injected asynchronous error 1"},
		{"hang", "FAKE_NCCL_HANG", "3", 100 * time.Millisecond, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				t.Setenv(tc.knob, tc.value)
				const n = 2
				ranks := world(t, v, n)
				var waited sync.WaitGroup // nobody aborts before all have seen what they see
				waited.Add(n)
				errs := all(n, func(i int) error {
					r := ranks[i]
					m := r.memory(t)
					defer m.Free()
					var err error
					for range 5 { // a call may already hear of what the third has met
						err = errors.Join(err, r.issueOne(m))
					}
					ctx, cancel := context.WithTimeout(t.Context(), tc.wait)
					defer cancel()
					err = errors.Join(err, r.wait(ctx))
					waited.Done()
					waited.Wait()
					r.Abort()
					r.Abort()
					if e := r.stream.Wait(within(t)); e != nil {
						return fmt.Errorf("the stream does not end: %w", e)
					}
					if e := r.issueOne(m); !errors.Is(e, errAborted) {
						return fmt.Errorf("a call after Abort: %w", e)
					}
					return err
				})
				for _, err := range errs {
					if tc.err == "" {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						continue
					}
					require.ErrorContains(t, err, tc.err)
					var l *engine.LibraryError
					require.ErrorAs(t, err, &l)
					require.Equal(t, 1, l.Result)
				}
			})
		})
	}
}

// TestRefusedCall: the error of a call says which, and the communicator is fine.
func TestRefusedCall(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		ranks := world(t, v, 2)
		each(t, 2, func(i int) error {
			r := ranks[i]
			m := r.memory(t)
			defer m.Free()
			at, _ := m.Ptr()
			for _, calls := range [][]*op.Call{
				{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1 << 20}, DstAt: at, SrcAt: at}}},
				{{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Int32, Root: 7, Count: 1}, DstAt: at, SrcAt: at}}, {Head: op.Head{Record: op.Record{Kind: op.Barrier, Root: -1}}}},
			} {
				var l *engine.LibraryError
				if err := r.Issue(r.handle(), calls); !errors.As(err, &l) || l.Result != 4 {
					return fmt.Errorf("%d calls: %w", len(calls), err)
				}
			}
			require.NoError(t, r.issueOne(m))
			return r.wait(within(t))
		})
	})
}

// TestStrict: an address that is no memory of the device is seen before the library is called.
func TestStrict(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		ranks := world(t, v, 2)
		for _, r := range ranks {
			r.end().group.Strict = true
		}
		host, other := new([16]int32), ranks[1].memory(t)
		defer other.Free()
		at, _ := other.Ptr()
		for _, addr := range []uintptr{addressOf(host), at, 12345} {
			err := ranks[0].Issue(ranks[0].handle(), []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: addr, SrcAt: addr, DstN: 1, SrcN: 1}}})
			require.ErrorContains(t, err, fmt.Sprintf("%#x", addr))
		}
	})
}

func TestShrink(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		const n = 4
		ranks := world(t, v, n)
		// Rank 1 is lost; a call waits for it.
		each(t, n, func(i int) error {
			r := ranks[i]
			if i == 1 {
				return nil
			}
			m := r.memory(t)
			require.NoError(t, r.issueOne(m))
			require.ErrorIs(t, r.Shrinks(within(t)), errUnfailed, "it has not failed")
			r.Abort()
			require.NoError(t, r.Shrinks(within(t)), "it is gone")
			require.NoError(t, r.stream.Wait(within(t)), "the stream is not released")
			require.ErrorIs(t, r.issueOne(m), errAborted, "a call after Abort")
			g := engine.Group{Rank: map[int]int{0: 0, 2: 1, 3: 2}[i], Size: n - 1, Device: i}
			e, err := r.Engine.Shrink(within(t), g, []int{1})
			require.NoError(t, err)
			require.NoError(t, m.Free())
			s, err := seat(r.lib, g, e)
			require.NoError(t, err)
			defer s.stream.Close()
			require.NoError(t, s.performAll(t.Context(), true))
			return s.Close()
		})
	})
}

func TestRegister(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		r := world(t, v, 1)[0]
		p, free, err := r.end().Alloc(1 << 16)
		require.NoError(t, err)
		release, err := r.end().Register(p, 1<<16)
		require.NoError(t, err)
		require.NoError(t, release())
		require.NoError(t, free())
	})
}

// TestSeveralCommunicators of one device, each used by a goroutine of its own.
func TestSeveralCommunicators(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		ranks := append(world(t, v, 2), world(t, v, 2)...)
		var memory []*gpu.Mem[int32]
		for _, r := range ranks {
			memory = append(memory, r.memory(t))
		}
		each(t, len(ranks), func(i int) error {
			for range 20 {
				require.NoError(t, ranks[i].issueOne(memory[i]))
			}
			return ranks[i].wait(within(t))
		})
		for _, m := range memory { // which waits for all of the device: not while peers still need it
			got := make([]int32, 1)
			require.NoError(t, m.Get(got))
			require.EqualValues(t, 1<<20, got[0])
			require.NoError(t, m.Free())
		}
	})
}

// TestSignals: the library takes the signals; a nil dereference is a panic all the same.
func TestSignals(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		t.Setenv("FAKE_NCCL_SIGNALS", "1")
		r := world(t, v, 1)[0]
		require.NoError(t, r.performSome(within(t)))
		require.Panics(t, func() {
			var p *int
			*p = 1
		})
	})
}
