package ckpt

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// stored is a Stored that is in memory.
type stored struct{ x []byte }

func (s *stored) Type() ccl.Type { return ccl.TypeUint8 }
func (s *stored) Len() int       { return len(s.x) }

func (s *stored) ReadAt(b []byte, at int64) (int, error)  { return copy(b, s.x[at:]), nil }
func (s *stored) WriteAt(b []byte, at int64) (int, error) { return copy(s.x[at:], b), nil }

// A disk that answers nothing is given up by Save, by a Saver's Save of what is Stored and by its Close, on whichever
// rank it is and whatever was asked of it. All ranks have an error that names the file, and go on.
func TestSilentDisk(t *testing.T) {
	before := same.Tick
	t.Cleanup(func() { same.Tick = before })
	same.Tick = 6700 * time.Microsecond
	for _, at := range []struct {
		by      string
		rank, n int // the n-th write, sync or rename
		file    string
	}{
		{"Save", 0, 1, "part-00001-of-00002.safetensors"},
		{"Close", 1, 1, "part-00002-of-00002.safetensors"},
		{"Stored", 1, 2, "part-00002-of-00002.safetensors"},
		{"Stored", 0, 4, "index.json"},
		{"Close", 0, 4, "index.json"},
		{"Save", 0, 7, "step-00000001"},
	} {
		t.Run(fmt.Sprint(at.by, at.rank, at.n), func(t *testing.T) {
			t.Parallel()
			silent, dir := make(chan struct{}), t.TempDir()
			answered := make(chan struct{})
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				reached := make(chan struct{})
				d := &disk{}
				if c.Rank() == at.rank {
					d = nth(at.n, func(string, string) error {
						close(reached)
						<-silent
						defer close(answered)
						return errors.New("the disk answers")
					})
				}
				ts := []Tensor{{Name: "x", Shape: []int{2}, Lo: c.Rank(), Hi: c.Rank() + 1, Data: &stored{[]byte{1}}}}
				if at.by == "Close" {
					ts[0].Data = []byte{1}
				}
				var err error
				if at.by == "Save" {
					err = save(ctx, c, d, Step(dir, 1), nil, ts)
				} else {
					s, bad := newSaver(ctx, c, func(context.Context, string) (target, string) { return d, Step(dir, 1) })
					require.NoError(t, bad)
					require.NoError(t, s.Save(ctx, Step(dir, 1), nil, ts))
					if at.by == "Close" && c.Rank() == at.rank {
						<-reached
					}
					ccltest.Barrier(t, c)
					if at.by == "Close" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						cancel()
					}
					err = s.Close(ctx)
				}
				if at.by != "Close" || c.Rank() == at.rank {
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					require.ErrorContains(t, err, "no answer for 2.01s: "+dir)
					require.ErrorContains(t, err, at.file+": i/o timeout")
				}
				if at.by == "Close" {
					require.ErrorIs(t, err, context.Canceled)
				}
				ccltest.Barrier(t, c)
			})
			close(silent)
			<-answered
		})
	}
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
