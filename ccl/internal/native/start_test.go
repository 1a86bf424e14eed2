//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

func TestStartFails(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		for _, tc := range []struct{ name, knob, value, want string }{
			{"fails", "FAKE_FAIL", "ncclCommInitRank:0:2", "ncclCommInitRank: unhandled system error: injected failure"},
			{"ctx ends", "FAKE_NCCL_IN_PROGRESS", "1", "context deadline exceeded"},
			{"not blocking", "NCCL_COMM_BLOCKING", "0", "ncclCommInitRank: NCCL_COMM_BLOCKING=0 is set"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				leaks(t, v)
				t.Setenv(tc.knob, tc.value)
				t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "1")
				lib := open(t, v)
				id, err := lib.ID()
				require.NoError(t, err)
				ctx := t.Context()
				if tc.name == "ctx ends" {
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
				}
				start := time.Now()
				_, err = lib.New(ctx, engine.Group{Size: 1, Locals: 1}, id)
				require.ErrorContains(t, err, tc.want)
				require.Less(t, time.Since(start), soon)
			})
		}
	})
}

// TestStartEnds: what Check reports ends a start whose peers do not come.
func TestStartEnds(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "1")
		lib := open(t, v)
		id, err := lib.ID()
		require.NoError(t, err)
		lost, calls := errors.New("rank 1 is lost"), 0
		check := func() error {
			if calls++; calls > 3 { // long before the library gives up, on a machine that is busy as well
				return lost
			}
			return nil
		}
		_, err = lib.New(within(t), engine.Group{Size: 2, Locals: 2, Check: check}, id)
		require.ErrorIs(t, err, lost)
	})
}

func TestStartRefuses(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		lib := open(t, v)
		id, err := lib.ID()
		require.NoError(t, err)
		_, err = lib.New(t.Context(), engine.Group{Size: 1, Locals: 1}, id[:64])
		require.ErrorContains(t, err, "a unique id has 128 bytes, this one 64")
		_, err = lib.New(t.Context(), engine.Group{Size: 1, Locals: 1, Device: 99}, id)
		require.ErrorContains(t, err, "99")
		errs := all(2, func(i int) error {
			_, err := lib.New(within(t), engine.Group{Rank: i, Size: 2, Locals: 2}, id)
			return err
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "both on device 0")
		}
	})
}

// TestStartGivenUp: a start whose ctx has ended is made all the same, later, into memory that is still there, and then it goes.
func TestStartGivenUp(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		keeps(t, v)
		t.Setenv("FAKE_NCCL_INIT_SYNC", "1") // RCCL 2.27.7 starts in the caller, whatever it is asked
		lib := open(t, v)
		id, err := lib.ID()
		require.NoError(t, err)
		t.Setenv("FAKE_NCCL_IN_PROGRESS", "1")
		for _, err := range all(2, func(i int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := lib.New(ctx, engine.Group{Rank: i, Size: 2, Device: i, Local: i, Locals: 2}, id)
			return err
		}) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// TestShrinksAtOnce: where a call has not come back after Abort, which holds mu, there is nothing to be shrunk, and no wait for it.
func TestShrinksAtOnce(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		e := &end{lib: open(t, v), ended: make(chan struct{})}
		e.state.Or(aborted)
		close(e.ended)
		e.mu.Lock()
		answer := make(chan error, 1)
		go func() { answer <- e.Shrinks(t.Context()) }()
		select {
		case err := <-answer:
			require.ErrorIs(t, err, errAborted)
		case <-time.After(limit):
			t.Fatal("it waits for the call")
		}
	})
}
