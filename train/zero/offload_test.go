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

// With Offload masters and AdamW's state are the host's: Step updates slices with the bits of a model that is on the host whole,
// the device holds neither, and a checkpoint goes to a model without a device.
func TestDeviceOffload(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		mem, err := device.New(streamOf(t, c))
		require.NoError(t, err)
		defer mem.Close()
		units := [][]int{{5, 40}, {33}, {100}}
		frozen := func(unit int) bool { return unit == 1 }
		h := optim.AdamW{LR: .01, Decay: .1}
		type trained struct {
			m      *zero.Model[ccl.BFloat16, float32]
			states []zero.State[float32]
		}
		start := func(o zero.Options) *trained {
			o.Frozen = frozen
			m := newModel[ccl.BFloat16, float32](t, c, units, &o)
			for i, lens := range units {
				require.NoError(t, m.Load(ctx, i, whole(lens, func(k int) float32 { return float32(k%9) / 3 }), 1))
			}
			return &trained{m, []zero.State[float32]{{Prefix: "m.", Of: shards(m, len(units))}, {Prefix: "v.", Of: shards(m, len(units))}}}
		}
		step := func(x *trained, on zero.Memory, n int) {
			for i := len(units) - 1; i >= 0; i-- {
				if frozen(i) {
					continue
				}
				bufs, err := x.m.GradBufs(ctx, i)
				require.NoError(t, err)
				for j, b := range bufs {
					g := make([]ccl.BFloat16, b.Len())
					for k := range g {
						g[k] = ccl.ToBFloat16(float32((n+1)*(k%7-3)+i-j) / 8)
					}
					require.NoError(t, addTo(on, b, ccl.BufOf(g)))
				}
				require.NoError(t, x.m.Reduce(i))
			}
			require.NoError(t, x.m.Step(ctx, func(p zero.Piece, w, g []float32) error {
				return optim.Apply(h, n, w, g, x.states[0].Of[p.Unit][p.At:p.At+len(w)], x.states[1].Of[p.Unit][p.At:p.At+len(w)])
			}))
		}
		for stage := range 4 {
			host, off := start(zero.Options{Stage: stage, Clip: 1}), start(zero.Options{Stage: stage, Clip: 1, Memory: mem, Offload: true})
			require.Zero(t, off.m.Bytes().Master)
			require.GreaterOrEqual(t, off.m.Bytes().Host, host.m.Bytes().Master)
			for n := range 3 {
				step(host, nil, n+1)
				step(off, mem, n+1)
			}
			for i := range units {
				if !frozen(i) {
					require.Equal(t, host.m.Shard(i), off.m.Shard(i), "stage %d, unit %d", stage, i)
				}
				bufs, err := off.m.ParamBufs(ctx, i)
				require.NoError(t, err)
				params, err := host.m.Params(ctx, i)
				require.NoError(t, err)
				for j, b := range bufs {
					got := make([]ccl.BFloat16, b.Len())
					require.NoError(t, copyOut(&counting{Memory: mem}, got, b))
					require.Equal(t, params[j], got, "stage %d, unit %d", stage, i)
				}
				off.m.Release(i)
				host.m.Release(i)
			}
			name := ckpt.Step(dir, stage)
			list, err := off.m.Tensors(nil, off.states...)
			require.NoError(t, err)
			require.NoError(t, ckpt.Save(ctx, c, name, nil, list))
			other := start(zero.Options{Stage: 3 - stage})
			list, err = other.m.Tensors(nil, other.states...)
			require.NoError(t, err)
			require.NoError(t, ckpt.Load(ctx, c, name, nil, list))
			require.NoError(t, other.m.Loaded(ctx))
			back := start(zero.Options{Stage: 3 - stage, Memory: mem, Offload: true})
			list, err = back.m.Tensors(nil, back.states...)
			require.NoError(t, err)
			require.NoError(t, ckpt.Load(ctx, c, name, nil, list))
			require.NoError(t, back.m.Loaded(ctx))
			step(other, nil, 4)
			step(back, mem, 4)
			for i := range units {
				if !frozen(i) {
					require.Equal(t, other.m.Shard(i), back.m.Shard(i))
				}
			}
			for _, x := range []*trained{host, off, other, back} {
				require.NoError(t, x.m.Close())
			}
		}
		_, err = zero.New[ccl.BFloat16, float32](ctx, c, units, &zero.Options{Memory: bare{mem}, Offload: true})
		require.ErrorContains(t, err, "zero: masters cannot be offloaded from memory that a zero_test.bare cannot copy to the host")
		_, err = zero.New[ccl.BFloat16, float32](ctx, c, units, &zero.Options{Memory: mem, Offload: c.Rank() == 1})
		require.ErrorContains(t, err, "Offload")
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
	require.EqualValues(t, 2e6+2e6, zero.NeedOf[ccl.BFloat16, float32](1e6, 4, &zero.Options{Offload: true}, 8))
	require.EqualValues(t, 5e5+5e5, zero.NeedOf[ccl.BFloat16, float32](1e6, 4, &zero.Options{Stage: 3, Offload: true}, 8))
}
