//go:build xla && cgo && linux

package fit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/nn"
)

// own is a model of one's own: docs/models.md shows it.
func own(vocab, width, layers int) *nn.Model {
	m := &nn.Model{Loss: nn.CrossEntropy}
	m.Units = append(m.Units, nn.Unit{Name: "in.", Kind: "in", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		return s.Embed(s.Tokens(), "embed", vocab, width)
	}})
	for i := range layers {
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("layers.%d.", i), Kind: "layer", Forward: layer})
	}
	m.Units = append(m.Units, nn.Unit{Name: "out.", Kind: "out", Forward: func(s *nn.Scope, x nn.V) nn.V {
		return s.Linear(s.RMSNorm(x, "norm", 1e-5), "head", vocab, false)
	}})
	return m
}

// layer is attention with four heads, and a gated map behind it.
func layer(s *nn.Scope, x nn.V) nn.V {
	b, t, n := x.Dims()[0], x.Dims()[1], x.Dims()[2]
	y := s.RMSNorm(x, "norm1", 1e-5)
	heads := func(name string) nn.V { return s.Linear(y, name, n, false).Reshape(b, t, 4, n/4) }
	y = s.Attend(heads("q"), heads("k"), heads("v"), nn.Attention{})
	x = x.Add(s.Linear(y, "o", n, false).As(x.Type()))
	y = s.RMSNorm(x, "norm2", 1e-5)
	y = nn.SiLU(s.Linear(y, "gate", 4*n, false)).Mul(s.Linear(y, "up", 4*n, false))
	return x.Add(s.Linear(y, "down", n, false).As(x.Type()))
}

// trainOwn trains it on the ranks of world, and continues a prompt.
func trainOwn(ctx context.Context, world *ccl.Comm, plugin string) (losses []float64, tokens []int32, err error) {
	m, err := machine.New(ctx, world, &machine.Options{Plugin: plugin})
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	o := &fit.Options{Rows: 4, Tokens: 16, Stage: 3, Clip: 1, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1}}
	t, err := fit.New(ctx, m, own(96, 64, 2), o)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	for n := 1; n <= 20; n++ {
		loss, err := t.Step(ctx, n, 3e-3, batches(o, n, world.Rank(), world.Size(), false))
		if err != nil {
			return nil, nil, err
		}
		list, err := t.Read(ctx, loss)
		if err != nil {
			return nil, nil, err
		}
		losses = append(losses, list...)
	}
	rows, err := t.Generate(ctx, [][]int32{{1, 2, 3}}, &fit.GenerateOptions{Tokens: 8})
	if err != nil {
		return nil, nil, err
	}
	return losses, rows[0], nil
}

func TestOwn(t *testing.T) {
	path := xlatest.Path(t)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		losses, tokens, err := trainOwn(t.Context(), c, path)
		require.NoError(t, err)
		require.Less(t, losses[19], losses[0]-.5)
		require.Len(t, tokens, 11)
	})
}
