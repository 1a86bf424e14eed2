package offload_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/zero"
)

// An Update that fails in the middle ends the Comm, whatever its error is: a part of the shards is updated.
func TestUpdateFails(t *testing.T) {
	for _, cause := range []error{errors.New("mine"), zero.ErrNotFinite, &ccl.Error{Code: ccl.ErrTimeout}} {
		for _, disk := range []*offload.Options{nil, {States: 2, Bucket: 1}} {
			t.Run(fmt.Sprint(cause, disk != nil), func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, 0)
					x := newToy[float32, float32](t, c, disk, zero.Options{Stage: 3})
					defer x.close(t)
					require.NoError(t, x.backward(t, c, 1, 0))
					n := 0
					err := x.m.Step(t.Context(), func(zero.Piece, []float32, []float32) error {
						if n++; n == 2 && c.Rank() == 1 {
							return cause
						}
						return nil
					})
					if c.Rank() == 1 {
						require.ErrorIs(t, err, cause)
						require.Error(t, c.Err())
					}
					require.Error(t, x.step(t, c, 2, 1))
				})
			})
		}
	}
}

// A model whose Disk was closed before it is told so, on all ranks, and never gets what was in memory by chance.
func TestClosedBefore(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		x := newToy[float32, float32](t, c, &offload.Options{States: 2, Bucket: 1}, zero.Options{Stage: 3})
		if c.Rank() == 0 {
			require.NoError(t, x.d.Close())
		}
		_, err := x.m.Params(t.Context(), 0)
		require.ErrorContains(t, err, "offload: the Disk is closed")
		x.close(t)
	})
}

// A Disk that New has not made, and one with a Bucket that no memory has, do no harm.
func TestOddDisks(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		d := &offload.Disk{}
		_, err := zero.New[float32, float32](t.Context(), c, units, &zero.Options{Disk: d})
		require.ErrorContains(t, err, "offload.New")
		require.Zero(t, d.Stats())
		require.NoError(t, d.Close())
		for _, bucket := range []int{math.MaxInt, math.MaxInt - 4096, 1 << 40} {
			x := newToy[float32, float32](t, c, &offload.Options{States: 2, Bucket: bucket}, zero.Options{Stage: 3})
			require.NoError(t, x.step(t, c, 1, 1))
			x.close(t)
		}
	})
}

// A Load whose context ends while the disk writes fails the Comm, and leaves the memory to the disk until the model is
// closed.
func TestLoadIsLeft(t *testing.T) {
	hold := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	offload.Opening(t, 0, func(f *offload.Faulty) {
		f.Fail = func(n int, write bool) error {
			if n == 1 {
				cancel()
				<-hold
			}
			return nil
		}
	})
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		d, err := offload.New(t.Context(), c, t.TempDir(), nil)
		require.NoError(t, err)
		m, err := zero.New[float32, float32](t.Context(), c, [][]int{{1 << 20}}, &zero.Options{Stage: 3, Disk: d})
		require.NoError(t, err)
		p := [][]float32{make([]float32, 1<<20)}
		for i := range p[0] {
			p[0][i] = float32(i)
		}
		require.ErrorIs(t, m.Load(ctx, 0, p, 0), context.Canceled)
		require.ErrorContains(t, c.Err(), "context canceled")
		var other [][]float32
		for range 8 {
			s, err := ccl.MakeSlice[float32](t.Context(), world, 1<<20)
			require.NoError(t, err)
			other = append(other, s)
		}
		for _, s := range other {
			for i := range s {
				s[i] = -1
			}
		}
		close(hold)
		require.NoError(t, d.Flush(t.Context()))
		list, err := m.Tensors(nil)
		require.NoError(t, err)
		got := make([]byte, 40)
		_, err = list[0].Data.(offload.Column).ReadAt(got, 4*1000)
		require.NoError(t, err)
		want, err := raw.Bytes(ccl.BufOf(p[0][1000:1010]))
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, s := range other {
			ccl.FreeSlice(s)
		}
		require.NoError(t, m.Close())
		require.NoError(t, d.Close())
	})
}

// A disk that never answers keeps its memory, and nobody else: a Step ends with its context, and the closes with an error
// that names the file. One that is slow is waited for.
func TestDiskNeverAnswers(t *testing.T) {
	for _, stage := range []int{1, 3} {
		hold, dir := make(chan struct{}), t.TempDir()
		offload.Impatient(t, 300*time.Millisecond)
		var held atomic.Bool
		offload.Opening(t, 1, func(f *offload.Faulty) {
			f.Fail = func(n int, write bool) error {
				if held.Load() {
					<-hold
				}
				time.Sleep(time.Millisecond)
				return nil
			}
		})
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			d, err := offload.New(t.Context(), c, dir, &offload.Options{States: 2, Bucket: 1})
			require.NoError(t, err)
			x := &toy[ccl.BFloat16, float32]{d: d}
			x.m, err = zero.New[ccl.BFloat16, float32](t.Context(), c, units, &zero.Options{Stage: stage, Disk: d})
			require.NoError(t, err)
			require.NoError(t, x.step(t, c, 1, 1))
			require.NoError(t, x.backward(t, c, 2, 0))
			ccltest.Barrier(t, c)
			held.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			none := func(zero.Piece, []float32, []float32) error { return nil }
			if c.Rank() == 1 {
				require.ErrorIs(t, x.m.Step(ctx, none), context.DeadlineExceeded)
				list, err := x.m.Tensors(nil)
				if err == nil { // a checkpoint gives the disk up as a close does
					at := slices.IndexFunc(list, func(x ckpt.Tensor) bool { c, is := x.Data.(offload.Column); return is && c.Len() > 0 })
					_, err = list[at].Data.(offload.Column).ReadAt(make([]byte, 4), 0)
				}
				require.ErrorContains(t, err, "offload: ")
				require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
				require.ErrorContains(t, x.m.Close(), "offload: no answer for 300ms: "+dir)
				require.ErrorContains(t, d.Close(), "offload: no answer for 300ms: "+dir)
				_, err = x.m.Tensors(nil)
				require.Error(t, err)
			} else {
				_ = x.m.Step(t.Context(), none) // which at stage 1 may be done before
				x.close(t)
			}
		})
		close(hold)
	}
}
