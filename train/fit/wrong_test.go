//go:build xla && cgo && linux

package fit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Of tokens that are equally likely the first is the guess, as Generate has it; and no score comes of no token.
func TestScores(t *testing.T) {
	o := options()
	o.Rows, o.Tokens, o.Masked = 1, 4, true
	o.Initial = func(_ int, p nn.Param) []float32 { return make([]float32, p.Len()) }
	with(t, 1, func() *nn.Model { return llama(true) }, o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		s, err := x.Eval(t.Context(), []fit.Batch{{Tokens: []int32{1, 2, 3, 4}, Wanted: []int32{0, 7, -100, 95}}})
		require.NoError(t, err)
		require.InDelta(t, 1./3, s.Accuracy, 1e-12)
		require.EqualValues(t, 3, s.Tokens)
	})
	for _, held := range [][]fit.Batch{nil, {{Tokens: []int32{1, 2, 3, 4}, Wanted: []int32{-1, -1, -100, -1}}}} {
		with(t, 1, func() *nn.Model { return llama(true) }, o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
			_, err := x.Eval(t.Context(), held)
			require.ErrorContains(t, err, "fit: Eval: no wanted token counts")
		})
	}
}

// Options that would do nothing are refused.
func TestUselessOptions(t *testing.T) {
	path := xlatest.Path(t)
	for _, tc := range []struct {
		model func() *nn.Model
		base  fit.Storage
		want  string
	}{
		{func() *nn.Model { return llama(false) }, "nf4", "fit: a base of nf4: the model has no LoRA, so nothing is frozen"},
		{func() *nn.Model { return llama(false) }, "int3", `fit: a base of "int3"; there are f32, bf16, int8 and nf4`},
		{adapted("f32", 0), "int3", `fit: a base of "int3"; there are f32, bf16, int8 and nf4`},
	} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			m, err := machine.New(t.Context(), c, &machine.Options{Plugin: path})
			require.NoError(t, err)
			defer m.Close()
			o := options()
			o.Base = tc.base
			_, err = fit.New(t.Context(), m, tc.model(), &o)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// A model is written though an Export before was killed, and one that is there already is not touched.
func TestExportAgain(t *testing.T) {
	to := filepath.Join(t.TempDir(), "tuned")
	for _, wrong := range []bool{false, true} {
		with(t, 1, func() *nn.Model { return llama(true) }, options(), func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
			if wrong {
				require.ErrorContains(t, x.Export(t.Context(), to+"/", 0), "tuned: file already exists")
				return
			}
			require.NoError(t, os.MkdirAll(to+".export.tmp/part", 0o777))
			require.NoError(t, x.Export(t.Context(), to+"/", 0))
			left, err := filepath.Glob(filepath.Dir(to) + "/*")
			require.NoError(t, err)
			require.Equal(t, []string{to}, left)
		})
	}
}

// What a checkpoint has, and the model by its config.json does not, is an error: the model would be another one.
func TestOtherModel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three runs")
	}
	dir := filepath.Join(t.TempDir(), "saved")
	with(t, 1, func() *nn.Model { return llama(false) }, options(), func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		require.NoError(t, x.Export(t.Context(), dir, 0))
	})
	with(t, 1, func() *nn.Model { return llama(true) }, options(), func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		require.NoError(t, x.LoadModel(t.Context(), dir), "lm_head.weight of a tied head is another name of the embedding")
	})
	with(t, 1, func() *nn.Model {
		m := llama(false)
		m.Units = append(m.Units[:2], m.Units[3])
		return m
	}, options(), func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		require.ErrorContains(t, x.LoadModel(t.Context(), dir), "has model.layers.1.input_layernorm.weight, which the model has not")
	})
}

// What a checkpoint does not have stays as it is, in a base in few bits, too: it is not what the model began with.
func TestLoadAgain(t *testing.T) {
	dir := t.TempDir()
	whole, none, some := filepath.Join(dir, "whole"), filepath.Join(dir, "none"), filepath.Join(dir, "some")
	other := options()
	other.Seed = 7
	with(t, 1, func() *nn.Model { return llama(true) }, other, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		require.NoError(t, x.Export(t.Context(), whole, 0))
		norm := ckpt.Tensor{Name: "model.layers.0.input_layernorm.weight", Shape: []int{64}, Data: make([]float32, 64)}
		require.NoError(t, ckpt.Save(t.Context(), c, some, nil, []ckpt.Tensor{norm}))
		require.NoError(t, ckpt.Save(t.Context(), c, none, nil, []ckpt.Tensor{{Name: "x", Shape: []int{1}, Data: []float32{1}}}))
	})
	for _, base := range []fit.Storage{quant.Float32, quant.NF4} {
		o := options()
		o.Base = base
		with(t, 1, adapted(hlo.F32, 0), o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
			held := batches(&o, 9, 0, 1, false)
			require.NoError(t, x.LoadModel(t.Context(), whole))
			want, err := x.Eval(t.Context(), held)
			require.NoError(t, err)
			report, err := x.Load(t.Context(), none, nil)
			require.NoError(t, err)
			require.Equal(t, []string{"x"}, report.Unused)
			got, err := x.Eval(t.Context(), held)
			require.NoError(t, err)
			require.Equal(t, want, got)
			_, err = x.Load(t.Context(), some, nil)
			if base == quant.Float32 {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, `and has others of unit "model.layers.0.", which was loaded before`)
			}
		})
	}
}
