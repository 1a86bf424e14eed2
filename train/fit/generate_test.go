//go:build xla && cgo && linux

package fit_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// Prompts of many lengths share programs, and are continued as without a cache, up to the last position of the model.
func TestFewPrograms(t *testing.T) {
	path := xlatest.Path(t)
	c, err := models.Parse([]byte(`{"model_type":"gpt2","vocab_size":96,"n_embd":64,"n_layer":2,"n_head":4,"n_positions":20,
		"initializer_range":0.2}`))
	require.NoError(t, err)
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		var said bytes.Buffer
		m, err := machine.New(ctx, world, &machine.Options{Plugin: path, Client: "cpu_device_count=1", Flags: quick, Out: &said})
		require.NoError(t, err)
		defer m.Close()
		o := options()
		x, err := fit.New(ctx, m, c.Model(), &o)
		require.NoError(t, err)
		defer x.Close()
		for _, tc := range []struct{ longest, programs int }{ // of three kinds: the first tokens, the next, and without a cache
			{12, 9},
			{16, 18},
		} {
			for n := tc.longest % 12; n <= tc.longest; n += 3 {
				prompt := batches(&o, n, 0, 1, false)[0].Tokens[:max(n, 1)]
				rows, err := x.Generate(ctx, [][]int32{prompt}, &fit.GenerateOptions{Tokens: 4})
				require.NoError(t, err)
				whole, err := x.Generate(ctx, [][]int32{prompt}, &fit.GenerateOptions{Tokens: 4, NoCache: true})
				require.NoError(t, err)
				require.Equal(t, whole, rows)
			}
			require.Equal(t, tc.programs, strings.Count(said.String(), "_next_"), said.String())
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = x.Generate(ended, [][]int32{{1}}, &fit.GenerateOptions{Tokens: 4})
		require.ErrorIs(t, err, context.Canceled)
		for _, tokens := range []int{19, math.MaxInt} {
			_, err = x.Generate(ctx, [][]int32{{1}, {1, 2}}, &fit.GenerateOptions{Tokens: tokens})
			require.EqualError(t, err,
				fmt.Sprintf("fit: a prompt of 2 tokens to be continued by %d: the model generates rows of at most 20", tokens))
		}
	}, ccltest.Deadline(3*time.Minute))
}

// RoPE of the type dynamic is the plain one up to max_position_embeddings. Beyond that, where transformers turns new
// keys otherwise than those in the cache, nothing is generated.
func TestDynamic(t *testing.T) {
	var want [][]int32
	for _, rope := range []string{"default", "dynamic"} {
		model := func() *nn.Model {
			c, err := models.Parse(fmt.Appendf(nil, `{"model_type":"llama","vocab_size":96,"hidden_size":64,"intermediate_size":128,
				"num_hidden_layers":2,"num_attention_heads":4,"max_position_embeddings":20,"initializer_range":0.2,
				"rope_parameters":{"rope_type":%q,"factor":4.0}}`, rope))
			require.NoError(t, err)
			return c.Model()
		}
		with(t, 1, model, options(), func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
			prompt := [][]int32{{1, 2, 3}}
			for _, no := range []bool{false, true} {
				rows, err := x.Generate(t.Context(), prompt, &fit.GenerateOptions{Tokens: 14, NoCache: no})
				require.NoError(t, err)
				if want == nil {
					want = rows
				}
				require.Equal(t, want, rows)
			}
			for _, no := range []bool{false, true} {
				_, err := x.Generate(t.Context(), prompt, &fit.GenerateOptions{Tokens: 18, NoCache: no})
				if rope == "default" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, "fit: a prompt of 3 tokens to be continued by 18: the model generates rows of at most 20")
				}
			}
		})
	}
}

// A step that none can be counted as, or a rate that is none, would leave parameters that are no numbers.
func TestStepsThatAreNone(t *testing.T) {
	o := options()
	with(t, 1, func() *nn.Model { return llama(true) }, o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		for _, tc := range []struct {
			n    int
			rate float64
		}{{0, 1e-3}, {-1, 1e-3}, {1, -1e-3}, {1, math.NaN()}, {1, math.Inf(1)}} {
			_, err := x.Step(t.Context(), tc.n, tc.rate, batches(&o, 1, 0, 1, false))
			require.EqualError(t, err, fmt.Sprintf("fit: step %d with the rate %v: steps count from 1, and a rate is a number from 0 on",
				tc.n, tc.rate))
		}
		_, err := x.Generate(t.Context(), [][]int32{{1}}, &fit.GenerateOptions{Tokens: math.MaxInt, NoCache: true})
		require.ErrorContains(t, err, "fit: a prompt of 1 tokens to be continued by 9223372036854775807: the model generates")
	})
}
