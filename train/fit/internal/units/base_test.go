//go:build xla && cgo && linux

package units

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// odd is a model whose lengths divide neither by blocks nor by ranks.
func odd(act hlo.Type) *nn.Model {
	m := &nn.Model{Loss: nn.CrossEntropy, Act: act}
	m.LoRA = &nn.LoRA{Rank: 1, Scale: 1, Has: func(name string) bool { return name == "mid.up" }}
	unit := func(name string, f func(s *nn.Scope, x nn.V) nn.V) {
		m.Units = append(m.Units, nn.Unit{Name: name + ".", Kind: name, Forward: f})
	}
	unit("in", func(s *nn.Scope, _ nn.V) nn.V { return s.Embed(s.Tokens(), "embed", 11, 7) })
	unit("mid", func(s *nn.Scope, x nn.V) nn.V {
		y := nn.SiLU(s.Linear(s.RMSNorm(x, "norm", 1e-5), "up", 13, true))
		return x.Add(s.Linear(y, "down", 7, false).As(x.Type()))
	})
	unit("out", func(s *nn.Scope, x nn.V) nn.V { return s.Linear(x, "head", 11, false) })
	return m
}

// bytes are those of buffers.
func bytes(t testing.TB, list []*xla.Buffer) (n int, all []float64) {
	for _, b := range list {
		switch b.Type() {
		case hlo.U8:
			n, all = n+b.Len(), append(all, got[uint8](t, b)...)
		case hlo.I8:
			n, all = n+b.Len(), append(all, got[int8](t, b)...)
		case hlo.BF16:
			n, all = n+2*b.Len(), append(all, got[ccl.BFloat16](t, b)...)
		default:
			n, all = n+4*b.Len(), append(all, got[float32](t, b)...)
		}
	}
	return n, all
}

func got[T interface {
	~uint8 | ~int8 | ~uint16 | ~float32
	ccl.Number
}](t testing.TB, b *xla.Buffer) (all []float64) {
	x := make([]T, b.Len())
	require.NoError(t, xla.Get(b, x))
	for _, v := range x {
		all = append(all, float64(v))
	}
	return all
}

// At stage 3 a rank holds its part of a quantized base, and what it gathers is what one rank holds.
func TestQuantizedShards(t *testing.T) {
	path := xlatest.Path(t)
	for _, base := range []quant.Storage{quant.NF4, quant.Int8} {
		act := map[quant.Storage]hlo.Type{quant.NF4: hlo.BF16, quant.Int8: hlo.F32}[base]
		var whole [][]float64
		most := 0
		for _, ranks := range []int{1, 3} {
			ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
				m, err := machine.New(t.Context(), c, &machine.Options{Plugin: path, Client: "cpu_device_count=1"})
				require.NoError(t, err)
				o := Options{Rows: 1, Tokens: 2, Stage: 3, Micro: 1, Base: base,
					Initial: func(_ int, p nn.Param) []float32 { return p.Initial(1) }}
				u, err := New(odd(act), o)
				require.NoError(t, err)
				require.NoError(t, u.Begin(t.Context(), m))
				q := u.Stores[0].(*Quantized)
				held := 0
				for k := range u.Params {
					n, _ := bytes(t, q.bufs[k])
					held += n
					for range 2 { // the second time into the same memory
						open, err := q.Open(t.Context(), k)
						require.NoError(t, err)
						_, all := bytes(t, open)
						if ranks == 1 {
							if len(whole) == k {
								whole = append(whole, all)
							}
						} else {
							require.Equal(t, whole[k], trimmed(q, k, all))
						}
						require.NoError(t, q.Done(k, open))
					}
				}
				if ranks == 1 {
					most = held
				}
				require.LessOrEqual(t, held, most/ranks+3*4*len(u.Params), "this rank's part, and what is at the ends of arrays")
				require.NoError(t, u.Close())
				require.NoError(t, m.Close())
			})
		}
	}
}

// trimmed leaves out what is at the ends of the arrays of unit u.
func trimmed(q *Quantized, u int, x []float64) (out []float64) {
	var n [3]int
	for _, p := range q.t.Of(u, true) {
		for k, m := range q.lengths(u, p) {
			n[k] += m
		}
	}
	for k, a := range q.arrays(u) {
		out, x = append(out, x[:n[k]]...), x[a.n:]
	}
	return out
}
