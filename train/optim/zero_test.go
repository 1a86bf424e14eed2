package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/optim/whole"
)

// Zero is 0 in each field that has another meaning of 0, to the bit.
func TestZero(t *testing.T) {
	g := []float64{3, -.25, 1e-3, 8}
	start := func() []float64 { return []float64{1, 2, -3, 4} }
	const lr = .5
	for _, tc := range []struct {
		name string
		step func(p, m, v []float64) error
		want func(p, g float64) float64 // after a step with m and v of 1
	}{
		{"AdamW Beta1", func(p, m, v []float64) error {
			return optim.Apply(optim.AdamW{LR: lr, Beta1: optim.Zero, Beta2: .5, Eps: 1}, 1, p, g, m, v)
		}, func(p, g float64) float64 { return p - lr*g/(math.Sqrt(.5+.5*g*g)/math.Sqrt(.5)+1) }},
		{"AdamW Beta2", func(p, m, v []float64) error {
			return optim.Apply(optim.AdamW{LR: lr, Beta1: .5, Beta2: optim.Zero, Eps: 1}, 1, p, g, m, v)
		}, func(p, g float64) float64 { return p - lr/.5*(.5+.5*g)/(math.Abs(g)+1) }},
		{"AdamW Eps", func(p, m, v []float64) error {
			return optim.Apply(optim.AdamW{LR: lr, Beta1: optim.Zero, Beta2: optim.Zero, Eps: optim.Zero}, 1, p, g, m, v)
		}, func(p, g float64) float64 { return p - math.Copysign(lr, g) }},
		{"Lion Beta1", func(p, m, v []float64) error {
			return optim.ApplyLion(optim.Lion{LR: lr, Beta1: optim.Zero}, p, g, m)
		}, func(p, g float64) float64 { return p - math.Copysign(lr, g) }},
		{"LAMB", func(p, m, v []float64) error {
			x := whole.Tensor{Rows: 1, Cols: 4}
			if err := whole.ApplyLAMB(whole.LAMB{LR: lr, Beta1: optim.Zero, Beta2: optim.Zero, Eps: optim.Zero}, 1, x, p, g, m, v); err != nil {
				return err
			}
			require.Equal(t, g, m)
			return nil
		}, func(p, g float64) float64 { return p - math.Copysign(lr*math.Sqrt(1+4+9+16)/2, g) }},
		{"LAMB Eps", func(p, m, v []float64) error { // 1, with which the longer gradients step further
			x := whole.Tensor{Rows: 1, Cols: 4}
			return whole.ApplyLAMB(whole.LAMB{LR: lr, Beta1: optim.Zero, Beta2: optim.Zero, Eps: 1}, 1, x, p, g, m, v)
		}, func(p, x float64) float64 {
			long := 0.
			for _, y := range g {
				long += y / (math.Abs(y) + 1) * y / (math.Abs(y) + 1)
			}
			return p - lr*math.Sqrt((1+4+9+16)/long)*x/(math.Abs(x)+1)
		}},
		{"Adafactor LR", func(p, m, v []float64) error {
			return whole.ApplyAdafactor(whole.Adafactor{LR: max(0, optim.Zero)}, 1, whole.Tensor{Rows: 1, Cols: 4}, p, g, v, nil)
		}, func(p, g float64) float64 { return p }},
		{"Muon Momentum", func(p, m, v []float64) error {
			before, w := start(), &whole.Workspace[float64]{}
			x := whole.Tensor{Rows: 2, Cols: 2}
			// Without momentum the state does not count.
			if err := whole.ApplyMuon(whole.Muon{LR: lr, Momentum: optim.Zero}, x, p, g, m, w); err != nil {
				return err
			}
			require.Equal(t, g, m)
			require.NoError(t, whole.ApplyMuon(whole.Muon{LR: lr, Momentum: optim.Zero}, x, before, g, make([]float64, 4), w))
			require.Equal(t, before, p)
			copy(p, start())
			return nil
		}, func(p, g float64) float64 { return p }},
	} {
		p, m, v := start(), []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}
		require.NoError(t, tc.step(p, m, v), tc.name)
		for i := range p {
			require.InDelta(t, tc.want(start()[i], g[i]), p[i], 1e-12, tc.name)
		}
	}
	f, err := optim.AdamW{Beta1: optim.Zero, Beta2: optim.Zero, Eps: optim.Zero}.Factors(1)
	require.NoError(t, err)
	require.Equal(t, optim.Factors{Alpha1: 1, Alpha2: 1, Root: 1, Keep: 1}, f)
	_, err = optim.AdamW{Beta1: -1}.Factors(1)
	require.ErrorContains(t, err, "Beta1 -1")
}
