package offload_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// units have several buckets of 4,096, a tail, parameters that end anywhere, and nothing at all.
var units = [][]int{{5000, 7, 10001}, {33}, {4096}, {}, {9000, 1}}

// toy is a model with AdamW's state, which is on a Disk or in slices.
type toy[P zero.Float, M optim.Float] struct {
	m    *zero.Model[P, M]
	d    *offload.Disk // nil: in memory
	mean [][]M
	squ  [][]M
}

func newToy[P zero.Float, M optim.Float](t testing.TB, c *ccl.Comm, disk *offload.Options, o zero.Options) *toy[P, M] {
	x := &toy[P, M]{}
	var err error
	if disk != nil {
		x.d, err = offload.New(t.Context(), c, t.TempDir(), disk)
		require.NoError(t, err)
		o.Disk = x.d
	}
	x.m, err = zero.New[P, M](t.Context(), c, units, &o)
	require.NoError(t, err)
	one := []float64{0}
	for i, lens := range units {
		var full [][]M
		for _, n := range lens {
			p := make([]M, n)
			for k := range p {
				one[0] = float64((k*7+i)%97-48) / 64
				p[k] = narrowed[M](one[0])
			}
			full = append(full, p)
		}
		require.NoError(t, x.m.Load(t.Context(), i, full, c.Size()-1))
		if disk == nil {
			n := x.m.ShardBuf(i).Len()
			x.mean, x.squ = append(x.mean, make([]M, n)), append(x.squ, make([]M, n))
		}
	}
	return x
}

func narrowed[M zero.Float](x float64) (y M) {
	switch p := any(&y).(type) {
	case *float32:
		*p = float32(x)
	case *float64:
		*p = x
	case *ccl.BFloat16:
		*p = ccl.ToBFloat16(float32(x))
	}
	return y
}

func (x *toy[P, M]) close(t testing.TB) {
	require.NoError(t, x.m.Close())
	require.NoError(t, x.d.Close())
}

// backward makes the gradients of micro batch b of step n.
func (x *toy[P, M]) backward(t testing.TB, c *ccl.Comm, n, b int) error {
	ctx := t.Context()
	for i := range units {
		if _, err := x.m.Params(ctx, i); err != nil {
			return err
		}
		x.m.Release(i)
	}
	for i := len(units) - 1; i >= 0; i-- {
		p, err := x.m.Params(ctx, i)
		if err != nil {
			return err
		}
		if !x.m.Frozen(i) {
			g, err := x.m.Grads(ctx, i)
			if err != nil {
				return err
			}
			for j := range g {
				for k := range g[j] {
					v := float64((k+n+b+c.Rank())%13-6)/8 + wide(p[j][k])
					g[j][k] = narrowed[P](wide(g[j][k]) + v)
				}
			}
		}
		x.m.Release(i)
		if !x.m.Frozen(i) {
			if err := x.m.Reduce(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// step makes step n, counted from 1, of so many micro batches.
func (x *toy[P, M]) step(t testing.TB, c *ccl.Comm, n, micro int) error {
	ctx := t.Context()
	for b := range micro {
		if err := x.backward(t, c, n, b); err != nil {
			return err
		}
	}
	a := optim.AdamW{LR: .01, Decay: .1}
	return x.m.Step(ctx, func(p zero.Piece, w, g []M) error {
		if x.d == nil {
			return optim.Apply(a, n, w, g, x.mean[p.Unit][p.At:p.At+len(w)], x.squ[p.Unit][p.At:p.At+len(w)])
		}
		if len(w) != p.Hi-p.Lo || len(offload.State[M](x.d, 0)) != len(w) || offload.State[M](x.d, 2) != nil {
			return fmt.Errorf("piece %v with %d parameters and %d of state", p, len(w), len(offload.State[M](x.d, 0)))
		}
		return optim.Apply(a, n, w, g, offload.State[M](x.d, 0), offload.State[M](x.d, 1))
	})
}

func wide[P zero.Float](x P) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	case ccl.BFloat16:
		return float64(x.Float32())
	}
	return 0
}

// params are all parameters.
func (x *toy[P, M]) params(t testing.TB) (list []P) {
	for i := range units {
		p, err := x.m.Params(t.Context(), i)
		require.NoError(t, err)
		for _, p := range p {
			list = append(list, p...)
		}
		x.m.Release(i)
	}
	return list
}

// A model on a disk has the bits of one in memory, in every layout that has another way through the code.
func TestBits(t *testing.T) {
	for _, o := range []zero.Options{
		{}, {Micro: 2, Clip: 1}, {Micro: 2, Sum: true, Unchecked: true}, {ReduceMaster: true, Clip: .5, Ahead: 2},
		{Micro: 3, Unchecked: true, Poison: true}, {Clip: 1e6},
	} {
		for stage := range 4 {
			for _, buffered := range []bool{false, true}[:1+o.Micro%2] {
				if buffered && testing.Short() {
					continue
				}
				o := o
				o.Stage = stage
				o.Frozen = func(unit int) bool { return unit == 1 && stage != 2 }
				o.FrozenParam = func(unit, param int) bool { return unit == 0 && param == 1 }
				t.Run(fmt.Sprintf("stage %d, %d micro, clip %v, master %v, buffered %v", stage, o.Micro, o.Clip, o.ReduceMaster, buffered), func(t *testing.T) {
					ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
						same[float32, float32](t, c, o, buffered)
						same[ccl.BFloat16, float32](t, c, o, buffered)
					})
				})
			}
		}
	}
}

func same[P zero.Float, M optim.Float](t testing.TB, c *ccl.Comm, o zero.Options, buffered bool) {
	here := newToy[P, M](t, c, nil, o)
	there := newToy[P, M](t, c, &offload.Options{States: 2, Bucket: 1, Buffered: buffered}, o)
	for n := range 2 {
		require.NoError(t, here.step(t, c, n+1, max(o.Micro, 1)))
		require.NoError(t, there.step(t, c, n+1, max(o.Micro, 1)))
		require.Equal(t, here.m.Norm(), there.m.Norm())
		a, b := here.params(t), there.params(t)
		require.Len(t, b, len(a))
		for k := range a {
			if a[k] != b[k] {
				require.Equal(t, a[k], b[k], "parameter %d after step %d", k, n+1)
			}
		}
	}
	b := there.m.Bytes()
	require.Zero(t, b.Master)
	if o.Stage == 3 {
		require.Zero(t, b.Params+b.Grads)
	}
	require.Equal(t, there.d.Stats().Size, b.Disk)
	here.close(t)
	there.close(t)
}

// A checkpoint of a model on a disk goes on in memory, and one of a model in memory on a disk, in any stage.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, disk := t.Context(), &offload.Options{States: 2, Bucket: 1}
		for stage := range 4 {
			for to := range 2 {
				disks := [2]*offload.Options{disk, nil}
				from := newToy[ccl.BFloat16, float32](t, c, disks[to], zero.Options{Stage: stage})
				require.NoError(t, from.step(t, c, 1, 1))
				name := filepath.Join(dir, fmt.Sprint(stage, to))
				list, err := from.m.Tensors(nil, from.states()...)
				require.NoError(t, err)
				if stage == 3 { // by a Saver, which may not read what the next step changes
					s, err := ckpt.NewSaver(ctx, c)
					require.NoError(t, err)
					require.NoError(t, s.Save(ctx, name, nil, list))
					require.NoError(t, from.step(t, c, 2, 1))
					require.NoError(t, s.Close(ctx))
				} else {
					require.NoError(t, ckpt.Save(ctx, c, name, nil, list))
					require.NoError(t, from.step(t, c, 2, 1))
				}
				into := newToy[ccl.BFloat16, float32](t, c, disks[1-to], zero.Options{Stage: 3 - stage})
				list, err = into.m.Tensors(nil, into.states()...)
				require.NoError(t, err)
				require.NoError(t, ckpt.Load(ctx, c, name, nil, list))
				require.NoError(t, into.m.Loaded(ctx))
				require.NoError(t, into.step(t, c, 2, 1))
				require.Equal(t, hash(from.params(t)), hash(into.params(t)), "stage %d, to %d", stage, to)
				into.close(t)
				from.close(t)
			}
		}
	})
}

// hash is of the bits.
func hash[P ccl.Number](p []P) int64 {
	h, _ := raw.Hash([]ccl.Buf{ccl.BufOf(p)})
	return h
}

func (x *toy[P, M]) states() []zero.State[M] {
	return []zero.State[M]{{Prefix: "m.", Of: x.mean}, {Prefix: "v.", Of: x.squ}}
}

// An error of one rank's disk, whatever was read or written, is that of all ranks, with its cause and the
// name of the file, and no rank goes on waiting.
func TestDiskFails(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		short bool
	}{{"full", syscall.ENOSPC, false}, {"broken", syscall.EIO, false}, {"short", io.ErrShortWrite, true}} {
		for at := 1; at < 150; at += 37 {
			t.Run(fmt.Sprint(tc.name[:1], at), func(t *testing.T) {
				t.Chdir(t.TempDir()) // the reason that other ranks hear has no room for any path
				offload.Opening(t, 1, func(f *offload.Faulty) {
					f.Short = tc.short
					f.Fail = func(n int, write bool) error {
						if n < at || tc.short && !write {
							return nil
						}
						return &fs.PathError{Op: "write", Path: f.Name(), Err: tc.err}
					}
				})
				ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, 0)
					ctx := t.Context()
					d, err := offload.New(ctx, c, ".", &offload.Options{States: 2, Bucket: 1})
					require.NoError(t, err)
					x := &toy[float32, float32]{d: d}
					x.m, err = zero.New[float32, float32](ctx, c, units, &zero.Options{Stage: 3, Disk: d, Micro: 1 + at%2})
					require.NoError(t, err)
					for n := 1; err == nil && n < 60; n++ {
						err = x.step(t, c, n, 1+at%2)
					}
					require.ErrorContains(t, err, "goccl-rank1-")
					require.ErrorContains(t, err, tc.err.Error())
					if c.Rank() == 1 {
						require.ErrorIs(t, err, tc.err)
					}
					require.Error(t, x.step(t, c, 9, 1))
					x.close(t)
				})
			})
		}
	}
}

// What does not fit a model on a disk is told before anything is done, to all ranks.
func TestRefuses(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		_, err := offload.New(ctx, nil, "", nil)
		require.EqualError(t, err, "offload: the Comm is nil")
		_, err = offload.New(ctx, c, t.TempDir(), &offload.Options{States: c.Rank() - 1})
		require.ErrorContains(t, err, "rank 0: -1 states, buckets of 524288; neither may be negative")
		_, err = offload.New(ctx, c, t.TempDir(), &offload.Options{States: c.Rank()})
		require.ErrorContains(t, err, "States")
		missing := filepath.Join(t.TempDir(), "none")
		_, err = offload.New(ctx, c, missing, nil)
		require.ErrorIs(t, err, fs.ErrNotExist)
		d, err := offload.New(ctx, c, t.TempDir(), nil)
		require.NoError(t, err)
		require.Nil(t, offload.State[float32](d, 0))
		require.Nil(t, offload.State[float32](nil, 0))
		o := &zero.Options{Disk: d}
		if c.Rank() == 1 {
			o = nil
		}
		_, err = zero.New[float32, float32](ctx, c, units, o)
		require.ErrorContains(t, err, "Disk")
		m, err := zero.New[float32, float32](ctx, c, units, &zero.Options{Stage: 3, Disk: d})
		require.NoError(t, err, "the model before was not made, and has left the Disk")
		for range 2 { // the second one sees that the first has left the Disk to its model
			_, err = zero.New[float32, float32](ctx, c, units, &zero.Options{Disk: d})
			require.ErrorContains(t, err, "the Disk has a model, or is closed: make another one")
		}
		require.NoError(t, m.Close())
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())
		x := newToy[float32, float32](t, c, &offload.Options{States: 1}, zero.Options{Stage: 3})
		require.EqualError(t, x.m.Swap(ctx, make([][]float32, len(units))),
			"zero: Swap is for parameters in memory, and this model has a Disk")
		x.close(t)
	})
	require.EqualValues(t, 1e6*8, zero.NeedOf[float32, float32](1e6, 4, &zero.Options{Disk: &offload.Disk{}}, 8))
	require.Zero(t, zero.NeedOf[float32, float32](1e6, 4, &zero.Options{Stage: 3, Disk: &offload.Disk{}}, 8))
}

// The buckets in memory are those of docs/training.md.
func TestBuckets(t *testing.T) {
	const p, m = 2, 4 // bytes of a bfloat16, and of a float32
	for _, tc := range []struct {
		stage, micro int
		same, narrow int // bytes of buckets for each element: parameters are float32, or bfloat16
	}{
		{1, 1, 4 * m, 4*m + 2*m + m}, {2, 2, 4 * m, 4*m + 2*m},
		{3, 1, 4*m + 2*m + 2*m, 4*m + 2*m + 2*p + 2*p + m}, {3, 2, 4*m + 2*m + 2*m, 4*m + 2*m + 2*m + 4*p},
	} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			o := zero.Options{Stage: tc.stage, Micro: tc.micro}
			same := newToy[float32, float32](t, c, &offload.Options{States: 2, Bucket: 4096}, o)
			require.NoError(t, same.step(t, c, 1, tc.micro))
			require.Equal(t, 4096*tc.same, offload.Buckets(same.d), "stage %d, %d micro batches", tc.stage, tc.micro)
			same.close(t)
			narrow := newToy[ccl.BFloat16, float32](t, c, &offload.Options{States: 2, Bucket: 4096}, o)
			require.NoError(t, narrow.step(t, c, 1, tc.micro))
			require.Equal(t, 4096*tc.narrow, offload.Buckets(narrow.d), "stage %d, %d micro batches, bfloat16", tc.stage, tc.micro)
			narrow.close(t)
		})
	}
}

// A model for which there is no room on one rank leaves the Disk, and what it has laid out, to another one.
func TestNoRoomOnce(t *testing.T) {
	offload.Opening(t, 1, func(f *offload.Faulty) {
		f.Room, f.Fail = syscall.ENOSPC, func(int, bool) error { return nil }
	})
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		d, err := offload.New(t.Context(), c, t.TempDir(), nil)
		require.NoError(t, err)
		_, err = zero.New[float32, float32](t.Context(), c, [][]int{{3}, {5000}}, &zero.Options{Stage: 3, Disk: d})
		require.ErrorIs(t, err, syscall.ENOSPC)
		m, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}}, &zero.Options{Stage: 3, Disk: d})
		require.NoError(t, err)
		require.EqualValues(t, 2*4096, m.Bytes().Disk, "parameters and gradients")
		require.NoError(t, m.Load(t.Context(), 0, [][]float32{{5, 6, 7}}, 0))
		w, err := m.Params(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, []float32{5, 6, 7}, w[0])
		m.Release(0)
		require.NoError(t, m.Close())
		require.NoError(t, d.Close())
	})
}

// The context that a model was made with may end: a Load has one of its own.
func TestLoadAfterNew(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		d, err := offload.New(ctx, c, t.TempDir(), nil)
		require.NoError(t, err)
		defer d.Close()
		m, err := zero.New[float32, float32](ctx, c, [][]int{{3}}, &zero.Options{Stage: 3, Disk: d})
		require.NoError(t, err)
		defer m.Close()
		cancel()
		require.NoError(t, m.Load(t.Context(), 0, [][]float32{{5, 6, 7}}, 1))
		w, err := m.Params(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, []float32{5, 6, 7}, w[0])
		m.Release(0)
	})
}
