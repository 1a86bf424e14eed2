package train_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

func init() { maps.Copy(empties, emptyOptim) }

// emptyOptim are the rows of empties for optimizers.
var emptyOptim = map[string]func(ctx context.Context, t testing.TB, c *ccl.Comm) error{
	"optim.Apply": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.Apply(optim.AdamW{}, 1, f, f, f, f)
	},
	"optim.Apply8": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.Apply8(optim.AdamW{}, 1, f, f, optim.NewMoments8(0))
	},
	"optim.ApplyAdagrad": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplyAdagrad(optim.Adagrad{}, f, f, f)
	},
	"optim.ApplyAdam": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplyAdam(optim.Adam{}, 1, f, f, f, f)
	},
	"optim.ApplyLion": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplyLion(optim.Lion{}, f, f, f)
	},
	"optim.ApplyMomentum": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplyMomentum(optim.MomentumFactors{}, f, f, f, f)
	},
	"optim.ApplyRMSprop": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplyRMSprop(optim.RMSprop{}, f, f, f, f, f)
	},
	"optim.ApplySGD": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return optim.ApplySGD(optim.SGD{Momentum: .9}, f, f, f)
	},
	"optim.EMA":            func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return optim.EMA(.9, 1, f, f) },
	"optim.Moments8.Load":  func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return optim.NewMoments8(0).Load(f, f) },
	"optim.Moments8.Store": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return optim.NewMoments8(0).Store(f, f) },
	"optim.NewGroups": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		_, err := optim.NewGroups[optim.AdamW](nil)
		return err
	},
	"optim/whole.ApplyAdafactor": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return whole.ApplyAdafactor(whole.Adafactor{}, 1, whole.Tensor{Rows: 0, Cols: 4}, f, f, f, make([]float32, 4))
	},
	"optim/whole.New": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		m, err := zero.New[float32, float32](ctx, c, [][]int{{}, {0, 1}}, &zero.Options{Stage: 3})
		require.NoError(t, err)
		defer m.Close()
		rules := []whole.Rule{whole.Muon{}, whole.Adafactor{}}
		o, err := whole.New(ctx, c, m, [][]whole.Tensor{{}, {{Cols: 4}, {Rows: 1, Cols: 1}}}, func(_, j int) whole.Rule { return rules[j] })
		require.NoError(t, err)
		for u := range 2 {
			_, err = m.Grads(ctx, u)
			require.NoError(t, err)
			require.NoError(t, m.Reduce(u))
		}
		return o.Step(ctx, 1)
	},
	"optim/whole.ApplyLAMB": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return whole.ApplyLAMB(whole.LAMB{}, 1, whole.Tensor{Rows: 0, Cols: 4}, f, f, f, f)
	},
	"optim/whole.ApplyMuon": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return whole.ApplyMuon(whole.Muon{}, whole.Tensor{Rows: 0, Cols: 4}, f, f, f, &whole.Workspace[float32]{})
	},
}
