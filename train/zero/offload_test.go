//go:build linux && cgo && nccl

package zero_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// bare is a Memory that cannot copy to the host.
type bare struct{ zero.Memory }

// toy is a model that is trained, with AdamW's state, where its masters are: at is a device's Memory, or nil on the host.
type toy struct {
	m      *zero.Model[ccl.BFloat16, float32]
	states []zero.State[float32]
	mem    *device.Memory // where parameters and gradients are; nil: on the host
	at     *device.Memory
}

var toyUnits, toyAdam = [][]int{{5, 40}, {33}, {100}}, optim.AdamW{LR: .01, Decay: .1}

func newToy(t testing.TB, c *ccl.Comm, mem *device.Memory, o zero.Options) *toy {
	x := &toy{mem: mem}
	o.Frozen = func(unit int) bool { return unit == 1 }
	if mem != nil {
		o.Memory = mem
	}
	if !o.Offload {
		x.at = mem
	}
	x.m = newModel[ccl.BFloat16, float32](t, c, toyUnits, &o)
	for i, lens := range toyUnits {
		require.NoError(t, x.m.Load(t.Context(), i, whole(lens, func(k int) float32 { return float32(k%9) / 3 }), 1))
	}
	for _, prefix := range []string{"m.", "v."} {
		s := zero.State[float32]{Prefix: prefix}
		if x.at == nil {
			s.Of = shards(x.m, len(toyUnits))
		} else {
			for i := range toyUnits {
				b, err := mem.Alloc(ccl.TypeFloat32, x.m.ShardBuf(i).Len())
				require.NoError(t, err)
				s.Bufs = append(s.Bufs, b)
			}
		}
		x.states = append(x.states, s)
	}
	return x
}

// step makes step n, counted from 1.
func (x *toy) step(t testing.TB, n int) {
	for i := len(toyUnits) - 1; i >= 0; i-- {
		if x.m.Frozen(i) {
			continue
		}
		bufs, err := x.m.GradBufs(t.Context(), i)
		require.NoError(t, err)
		for j, b := range bufs {
			g := make([]ccl.BFloat16, b.Len())
			for k := range g {
				g[k] = ccl.ToBFloat16(float32((n+1)*(k%7-3)+i-j) / 8)
			}
			require.NoError(t, addTo(memory(x.mem), b, ccl.BufOf(g)))
		}
		require.NoError(t, x.m.Reduce(i))
	}
	if x.at != nil {
		require.NoError(t, x.m.StepBufs(t.Context(), func(p zero.Piece, w, g ccl.Buf) error {
			lo, hi := p.At, p.At+w.Len()
			return x.at.AdamW(toyAdam, n, w, g, x.states[0].Bufs[p.Unit].From(lo, hi), x.states[1].Bufs[p.Unit].From(lo, hi))
		}))
		return
	}
	require.NoError(t, x.m.Step(t.Context(), func(p zero.Piece, w, g []float32) error {
		return optim.Apply(toyAdam, n, w, g, x.states[0].Of[p.Unit][p.At:p.At+len(w)], x.states[1].Of[p.Unit][p.At:p.At+len(w)])
	}))
}

// memory is mem, which may be none.
func memory(mem *device.Memory) zero.Memory {
	if mem == nil {
		return nil
	}
	return &counting{Memory: mem}
}

// masters are those of this rank.
func (x *toy) masters(t testing.TB) (list [][]float32) {
	for i := range toyUnits {
		if !x.m.Frozen(i) {
			s := make([]float32, x.m.ShardBuf(i).Len())
			require.NoError(t, copyOut(memory(x.at), s, x.m.ShardBuf(i)))
			list = append(list, s)
		}
	}
	return list
}

// params are all parameters.
func (x *toy) params(t testing.TB) (list [][]ccl.BFloat16) {
	for i := range toyUnits {
		bufs, err := x.m.ParamBufs(t.Context(), i)
		require.NoError(t, err)
		for _, b := range bufs {
			p := make([]ccl.BFloat16, b.Len())
			require.NoError(t, copyOut(memory(x.mem), p, b))
			list = append(list, p)
		}
		x.m.Release(i)
	}
	return list
}

// Where masters and AdamW's state are on a device, and where they are the host's by Offload, a model has the bits of one that is on
// the host whole. A checkpoint of it goes on on the host, and as it was, in another stage.
func TestDeviceTensors(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	for _, offload := range []bool{false, true} {
		dir := t.TempDir()
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			mem, err := device.New(streamOf(t, c))
			require.NoError(t, err)
			defer mem.Close()
			for stage := range 4 {
				host, far := newToy(t, c, nil, zero.Options{Stage: stage, Clip: 1}), newToy(t, c, mem, zero.Options{Stage: stage, Clip: 1, Offload: offload})
				if offload {
					require.Zero(t, far.m.Bytes().Master)
					require.GreaterOrEqual(t, far.m.Bytes().Host, host.m.Bytes().Master)
				}
				for n := range 3 {
					host.step(t, n+1)
					far.step(t, n+1)
				}
				require.Equal(t, host.masters(t), far.masters(t), "stage %d, offload %v", stage, offload)
				require.Equal(t, host.params(t), far.params(t), "stage %d, offload %v", stage, offload)
				name := ckpt.Step(dir, stage)
				list, err := far.m.Tensors(nil, far.states...)
				require.NoError(t, err)
				require.NoError(t, ckpt.Save(ctx, c, name, nil, list))
				other, back := newToy(t, c, nil, zero.Options{Stage: 3 - stage}), newToy(t, c, mem, zero.Options{Stage: 3 - stage, Offload: offload})
				for _, x := range []*toy{other, back} {
					list, err := x.m.Tensors(nil, x.states...)
					require.NoError(t, err)
					require.NoError(t, ckpt.Load(ctx, c, name, nil, list))
					require.NoError(t, x.m.Loaded(ctx))
					x.step(t, 4)
				}
				require.Equal(t, other.masters(t), back.masters(t), "stage %d, offload %v", stage, offload)
				for _, x := range []*toy{host, far, other, back} {
					require.NoError(t, x.m.Close())
				}
			}
			_, err = zero.New[ccl.BFloat16, float32](ctx, c, toyUnits, &zero.Options{Memory: bare{mem}, Offload: true})
			require.ErrorContains(t, err, "zero: masters cannot be offloaded from memory that a zero_test.bare cannot copy to the host")
			_, err = zero.New[ccl.BFloat16, float32](ctx, c, toyUnits, &zero.Options{Memory: mem, Offload: c.Rank() == 1})
			require.ErrorContains(t, err, "Offload")
		}, ccltest.With(ccl.Options{Backend: "nccl"}))
	}
	require.EqualValues(t, 2e6+2e6, zero.NeedOf[ccl.BFloat16, float32](1e6, 4, &zero.Options{Offload: true}, 8))
	require.EqualValues(t, 5e5+5e5, zero.NeedOf[ccl.BFloat16, float32](1e6, 4, &zero.Options{Stage: 3, Offload: true}, 8))
}
