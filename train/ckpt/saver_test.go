package ckpt

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/internal/same"
)

func TestSaver(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		s, err := NewSaver(ctx, c)
		require.NoError(t, err)
		require.NoError(t, s.Wait(ctx), "there was no Save")
		x := []float32{1, 2, 3, 4}
		lo := 2 * c.Rank()
		ts := []Tensor{{Name: "x", Shape: []int{4}, Lo: lo, Hi: lo + 2, Data: x[lo : lo+2]}}
		state := map[string]int{"step": 1}
		require.NoError(t, s.Save(ctx, Step(dir, 1), state, ts))
		x[0], x[1], x[2], x[3], state["step"] = 9, 9, 9, 9, 9 // training goes on, and so do calls on its Comm
		require.NoError(t, ccl.Barrier(ctx, c))
		require.NoError(t, s.Wait(ctx))

		got, step := make([]float32, 4), map[string]int{}
		require.NoError(t, Load(ctx, c, Step(dir, 1), &step, []Tensor{{Name: "x", Shape: []int{4}, Data: got}}))
		require.Equal(t, []float32{1, 2, 3, 4}, got)
		require.Equal(t, map[string]int{"step": 1}, step)

		require.NoError(t, s.Save(ctx, Step(dir, 1), state, ts), "it begins")
		require.ErrorContains(t, s.Save(ctx, Step(dir, 2), state, ts), "already exists", "the error of the one before")
		require.NoError(t, s.Save(ctx, Step(dir, 2), state, ts))
		require.NoError(t, s.Close(ctx))
		require.NoError(t, Load(ctx, c, Step(dir, 2), nil, []Tensor{{Name: "x", Shape: []int{4}, Data: got}}))
		require.Equal(t, []float32{9, 9, 9, 9}, got)

		s, err = NewSaver(ctx, c)
		require.NoError(t, err)
		require.NoError(t, s.Save(ctx, Step(dir, 3), func() {}, ts))
		require.ErrorContains(t, s.Wait(ctx), "unsupported type", "on all ranks")
		require.NoError(t, s.Save(ctx, filepath.Join(Step(dir, 1), indexName, "x"), 1, ts), "in a file")
		require.Error(t, s.Close(ctx))
		require.ErrorContains(t, s.Save(ctx, Step(dir, 4), 1, ts), "ckpt: Saver: it is closed")
		require.NoError(t, s.Close(ctx), "again")
	})
}

// Close gives up a Save to a disk that does not answer, once its context has ended; the other rank has why, and both go on.
func TestSaverOfSilentDisk(t *testing.T) {
	before := same.Tick
	t.Cleanup(func() { same.Tick = before })
	same.Tick = time.Millisecond
	silent, dir := make(chan struct{}), t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		reached := make(chan struct{}, 1)
		s, err := newSaver(t.Context(), c, func(_ context.Context, dir string) (target, string) {
			return &disk{fault: func(op, _ string) error {
				if c.Rank() == 1 && op == "write" {
					reached <- struct{}{}
					<-silent
					return errors.New("the disk answers")
				}
				return nil
			}}, dir
		})
		require.NoError(t, err)
		require.NoError(t, s.Save(t.Context(), Step(dir, 1), nil, []Tensor{{Name: "x", Shape: []int{2}, Lo: c.Rank(), Hi: c.Rank() + 1, Data: make([]float32, 1)}}))
		if c.Rank() == 1 {
			<-reached
		}
		ccltest.Barrier(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = s.Close(ctx)
		require.ErrorIs(t, err, context.Canceled)
		if c.Rank() == 1 {
			require.ErrorContains(t, err, "no answer from the disk; the Save is left to it")
			close(silent)
			require.ErrorContains(t, <-s.done, "the Comm is closed")
		}
		ccltest.Barrier(t, c)
	})
}

// A Save ends when the Comm of the training does, and a Saver of nobody is refused.
func TestSaverEnds(t *testing.T) {
	_, err := NewSaver(t.Context(), nil)
	require.ErrorContains(t, err, "the Comm is nil")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := context.Background()
		s, err := NewSaver(ctx, c)
		require.NoError(t, err)
		_ = ccl.Barrier(ctx, c) // both have a Saver before the Comm fails, which may be in here on rank 0
		if c.Rank() == 1 {
			c.Abort(errors.New("on purpose"))
		} else { // which waits for rank 1
			require.NoError(t, s.Save(ctx, Step(t.TempDir(), 1), 1, []Tensor{{Name: "x", Shape: []int{1}, Data: []int32{1}}}))
			require.ErrorIs(t, s.Wait(ctx), ccl.ErrAborted)
		}
		require.NoError(t, s.Close(ctx))
	})
}
