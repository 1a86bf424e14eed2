package pp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/pp"
)

// layer maps in numbers to out others: y[j] = tanh(w*x[j mod in] + b).
type layer struct {
	in, out      int
	w, b, dw, db float64
}

func (l *layer) forward(x []float64) []float64 {
	y := make([]float64, l.out)
	for j := range y {
		y[j] = math.Tanh(l.w*x[j%l.in] + l.b)
	}
	return y
}

func (l *layer) backward(x, y, dy []float64) []float64 {
	dx := make([]float64, l.in)
	for j := range y {
		d := dy[j] * (1 - y[j]*y[j])
		l.dw += d * x[j%l.in]
		l.db += d
		dx[j%l.in] += d * l.w
	}
	return dx
}

const widest = 9

func layers(r *rand.Rand, n int) (all []layer) {
	in := 1 + r.IntN(widest)
	for range n {
		out := 1 + r.IntN(widest)
		all = append(all, layer{in: in, out: out, w: r.Float64(), b: r.NormFloat64() / 8})
		in = out
	}
	return all
}

func inputOf(l *layer, micro int) []float64 {
	x := make([]float64, l.in)
	for i := range x {
		x[i] = math.Sin(float64(7*micro + i))
	}
	return x
}

// uneven is a stage of some layers for each chunk, whose activations have a length of their own in each place.
type uneven struct {
	parts       [][]layer // by chunk
	first, last bool
	acts        map[[2]int][][]float64 // by micro batch and chunk
	in, out     [2][2][widest]float64
	loss        float64
}

func (s *uneven) ends(x pp.Step) (in, out int) {
	part := s.parts[x.Chunk]
	if x.Backward {
		return part[len(part)-1].out, part[0].in
	}
	return part[0].in, part[len(part)-1].out
}

func (s *uneven) In(x pp.Step) ccl.Buf {
	n, _ := s.ends(x)
	return ccl.BufOf(s.in[way(x)][x.In][:n])
}

func (s *uneven) Out(x pp.Step) ccl.Buf {
	_, n := s.ends(x)
	return ccl.BufOf(s.out[way(x)][x.Out][:n])
}

func (s *uneven) Run(_ context.Context, x pp.Step) error {
	part, key := s.parts[x.Chunk], [2]int{x.Micro, x.Chunk}
	n, _ := s.ends(x)
	first, last := s.first && x.Chunk == 0, s.last && x.Chunk == len(s.parts)-1
	var v []float64
	if x.Backward && !last || !x.Backward && !first { // else nothing comes in, and the buffer is another step's
		v = append(v, s.in[way(x)][x.In][:n]...)
	}
	if !x.Backward {
		if first {
			v = inputOf(&part[0], x.Micro)
		}
		acts := [][]float64{v}
		for i := range part {
			v = part[i].forward(v)
			acts = append(acts, v)
		}
		s.acts[key] = acts
		for _, y := range v {
			if last {
				s.loss += y * y / 2
			}
		}
	} else {
		acts := s.acts[key]
		if delete(s.acts, key); last {
			v = acts[len(acts)-1]
		}
		for i := len(part) - 1; i >= 0; i-- {
			v = part[i].backward(acts[i], acts[i+1], v)
		}
	}
	if x.Backward && !first || !x.Backward && !last {
		copy(s.out[way(x)][x.Out][:], v)
	}
	return nil
}

// Random models, cut anywhere, have the loss and the gradients of one rank, bit for bit, with every schedule.
func TestRandomPipelines(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 12
	}
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 1))
		stages, chunks, micros := 1+r.IntN(4), 1, 1+r.IntN(9)
		s := []pp.Schedule{nil, pp.GPipe, pp.OneFOneB}[r.IntN(3)]
		if r.IntN(3) == 0 {
			chunks = 2
			s = pp.Interleaved(2)
		}
		parts := stages * chunks
		model := layers(r, parts+r.IntN(5))
		cuts := []int{0}
		for _, at := range r.Perm(len(model) - 1)[:parts-1] {
			cuts = append(cuts, at+1)
		}
		cuts = append(cuts, len(model))
		slices.Sort(cuts)
		hosts := 1 + r.IntN(min(stages, 2))

		alone := append([]layer(nil), model...)
		loss := 0.
		for m := range micros {
			acts := [][]float64{inputOf(&alone[0], m)}
			for i := range alone {
				acts = append(acts, alone[i].forward(acts[i]))
			}
			d := acts[len(alone)]
			for _, y := range d {
				loss += y * y / 2
			}
			for i := len(alone) - 1; i >= 0; i-- {
				d = alone[i].backward(acts[i], acts[i+1], d)
			}
		}
		t.Run(fmt.Sprintf("%d: %d stages, %d chunks, %d micro batches, %d hosts", run, stages, chunks, micros, hosts), func(t *testing.T) {
			ccltest.Run(t, stages, func(t testing.TB, c *ccl.Comm) {
				p := newPipeline(t, c, &pp.Options{Chunks: chunks})
				defer p.Close()
				for step := range 2 {
					st := &uneven{first: c.Rank() == 0, last: c.Rank() == stages-1, acts: map[[2]int][][]float64{}}
					for k := range chunks {
						part := k*stages + c.Rank()
						st.parts = append(st.parts, append([]layer(nil), model[cuts[part]:cuts[part+1]]...))
					}
					if step == 1 { // an evaluation before
						_, err := p.Run(t.Context(), pp.Forward(s), micros, st)
						require.NoError(t, err)
						if st.last {
							require.Equal(t, loss, st.loss)
						}
						st.loss = 0
						clear(st.acts)
					}
					_, err := p.Run(t.Context(), s, micros, st)
					require.NoError(t, err)
					if st.last {
						require.Equal(t, loss, st.loss)
					}
					for k := range chunks {
						part := k*stages + c.Rank()
						require.Equal(t, alone[cuts[part]:cuts[part+1]], st.parts[k])
					}
				}
			}, ccltest.Hosts(hosts))
		})
	}
}
