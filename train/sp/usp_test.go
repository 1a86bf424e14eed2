package sp_test

import (
	"fmt"
	"math"
	"math/rand"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/sp"
)

// layer is attention with several heads: q and dout are [tokens][heads][dim], kv is [tokens][kvHeads][2][dim].
type layer struct {
	tokens, heads, kvHeads int
	q, kv, dout            []float32
}

func newLayer(tokens, heads, kvHeads int) layer {
	r := rand.New(rand.NewSource(int64(tokens)))
	f := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32() - .5
		}
		return x
	}
	return layer{tokens, heads, kvHeads, f(tokens * heads * dim), f(tokens * kvHeads * 2 * dim), f(tokens * heads * dim)}
}

// full is its causal result and gradients in float64, on one rank.
func (l layer) full() (out, dq, dkv []float64) {
	out, dq, dkv = make([]float64, len(l.q)), make([]float64, len(l.q)), make([]float64, len(l.kv))
	for h := range l.heads {
		of := h * l.kvHeads / l.heads
		for i := range l.tokens {
			q := l.q[(i*l.heads+h)*dim:]
			at := (i*l.heads + h) * dim
			w, sum := make([]float64, i+1), 0.
			for j := range w {
				w[j] = math.Exp(dot(q, l.kv[(j*l.kvHeads+of)*2*dim:]))
				sum += w[j]
			}
			delta := 0.
			for j := range w {
				w[j] /= sum
				for d := range dim {
					out[at+d] += w[j] * float64(l.kv[((j*l.kvHeads+of)*2+1)*dim+d])
				}
			}
			for d := range dim {
				delta += out[at+d] * float64(l.dout[at+d])
			}
			for j := range w {
				k, v, dw := (j*l.kvHeads+of)*2*dim, ((j*l.kvHeads+of)*2+1)*dim, 0.
				for d := range dim {
					dw += float64(l.dout[at+d]) * float64(l.kv[v+d])
					dkv[v+d] += w[j] * float64(l.dout[at+d])
				}
				ds := w[j] * (dw - delta) * invRoot
				for d := range dim {
					dq[at+d] += ds * float64(l.kv[k+d])
					dkv[k+d] += ds * float64(q[d])
				}
			}
		}
	}
	return
}

// oneHead is one head of rows of several.
func oneHead(x []float32, heads, h, width int) []float32 {
	out := make([]float32, 0, len(x)/heads)
	for at := h * width; at < len(x); at += heads * width {
		out = append(out, x[at:at+width]...)
	}
	return out
}

func addHead(x []float32, heads, h, width int, from []float32) {
	for i := range from {
		x[(i/width*heads+h)*width+i%width] += from[i]
	}
}

// count makes c's Comm of its own, with what its calls send to other ranks added to elements.
func count(t testing.TB, c *ccl.Comm, elements *atomic.Int64) *ccl.Comm {
	own, err := c.SplitWith(t.Context(), 0, c.Rank(), func(o *ccl.Options) {
		o.OnCall = func(k ccl.Observation) {
			switch k.Call.Kind {
			case ccl.KindAllToAll, ccl.KindAllToAllV: // of what it has, all but its own part
				elements.Add(int64(k.Bytes / 4 / c.Size() * (c.Size() - 1)))
			case ccl.KindSend, ccl.KindSendRecv:
				if c.Size() > 1 { // not to itself
					elements.Add(int64(k.Bytes / 4))
				}
			}
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { own.Close() })
	return own
}

// Ulysses inside and a ring across, on a mesh, have the values and gradients of attention on one rank, with fewer heads of
// keys and values, and where tokens do not divide; and where they do they send what Volume says.
func TestUnified(t *testing.T) {
	for _, tokens := range []int{48, 47, 7} {
		l := newLayer(tokens, 8, 4)
		out, dq, dkv := l.full()
		for _, grid := range [][2]int{{1, 1}, {2, 2}, {3, 2}, {2, 4}, {4, 1}, {1, 4}} {
			ring, inside := grid[0], grid[1]
			t.Run(fmt.Sprintf("%d tokens, ring %d, ulysses %d", tokens, ring, inside), func(t *testing.T) {
				ccltest.Run(t, ring*inside, func(t testing.TB, c *ccl.Comm) {
					m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "ring", Size: ring}, mesh.Dim{Name: "ulysses", Size: inside})
					require.NoError(t, err)
					defer m.Close()
					var sent atomic.Int64
					// known is what was sent since it was asked last: a call that follows waits for what was issued.
					known := func(c *ccl.Comm) int {
						ccltest.Barrier(t, c)
						return int(sent.Swap(0))
					}
					outer, inner := count(t, m.Comm("ring"), &sent), count(t, m.Comm("ulysses"), &sent)
					u := unified{t, l, m, outer, inner, nil, nil}
					gotOut, kv, q := u.forward()
					lo, hi := u.mine()
					near(t, out[lo*l.heads*dim:hi*l.heads*dim], gotOut, "out")
					forward, backward := sp.Volume(sp.Shape{Seq: tokens, Heads: l.heads, Dim: dim}, l.kvHeads, inside, ring)
					if n := known(outer); tokens%(ring*inside) == 0 {
						require.Equal(t, forward, n)
					}
					gotDQ, gotDKV := u.backward(q, kv)
					near(t, dq[lo*l.heads*dim:hi*l.heads*dim], gotDQ, "dq")
					near(t, dkv[lo*l.kvHeads*2*dim:hi*l.kvHeads*2*dim], gotDKV, "dkv")
					if n := known(outer); tokens%(ring*inside) == 0 {
						require.Equal(t, backward, n)
					}
				})
			})
		}
	}
	f, b := sp.Volume(sp.Shape{Seq: 1, Heads: 1, Dim: 1}, 1, 0, 1)
	require.Zero(t, f+b)
}

// unified is one rank's attention.
type unified struct {
	t            testing.TB
	l            layer
	m            *mesh.Mesh
	outer, inner *ccl.Comm
	soft         []*sp.Softmax // by head
	outs         [][]float32
}

// block is the tokens of a place in the ring, and mine this rank's.
func (u *unified) block(at int) (lo, hi int) { return sp.Part(u.l.tokens, at, u.m.Size("ring")) }

func (u *unified) mine() (lo, hi int) {
	from, to := u.block(u.m.Coord("ring"))
	lo, hi = sp.Part(to-from, u.m.Coord("ulysses"), u.m.Size("ulysses"))
	return from + lo, from + hi
}

// toHeads gives this rank its heads of the ring's part, of rows of heads of so many elements.
func (u *unified) toHeads(x []float32, heads, width int) []float32 {
	lo, hi := u.block(u.m.Coord("ring"))
	dst := make([]float32, (hi-lo)*heads/u.inner.Size()*width)
	require.NoError(u.t, sp.ToHeads(u.t.Context(), u.inner, sp.Shape{Seq: hi - lo, Heads: heads, Dim: width}, dst, x, make([]float32, len(x))))
	return dst
}

func (u *unified) toSequence(x []float32, heads, width int) []float32 {
	from, to := u.block(u.m.Coord("ring"))
	lo, hi := u.mine()
	dst := make([]float32, (hi-lo)*heads*width)
	require.NoError(u.t, sp.ToSequence(u.t.Context(), u.inner, sp.Shape{Seq: to - from, Heads: heads, Dim: width}, dst, x, make([]float32, len(dst))))
	return dst
}

func (u *unified) lens() (lens []int) {
	for r := range u.outer.Size() {
		lo, hi := u.block(r)
		lens = append(lens, (hi-lo)*u.l.kvHeads/u.inner.Size()*2*dim)
	}
	return lens
}

func span(lo, hi int) (list []int) {
	for i := lo; i < hi; i++ {
		list = append(list, i)
	}
	return list
}

func (u *unified) forward() (out, kv, q []float32) {
	lo, hi := u.mine()
	heads, kvHeads := u.l.heads/u.inner.Size(), u.l.kvHeads/u.inner.Size()
	q = u.toHeads(u.l.q[lo*u.l.heads*dim:hi*u.l.heads*dim], u.l.heads, dim)
	kv = u.toHeads(u.l.kv[lo*u.l.kvHeads*2*dim:hi*u.l.kvHeads*2*dim], u.l.kvHeads, 2*dim)
	pos := span(u.block(u.outer.Rank()))
	for range heads {
		u.soft, u.outs = append(u.soft, sp.NewSoftmax(len(pos))), append(u.outs, make([]float32, len(pos)*dim))
	}
	r := sp.NewRingOf(u.outer, kv, u.lens())
	for r.Next(u.t.Context()) {
		of := span(u.block(r.From()))
		for h := range heads {
			keys := oneHead(r.Block(), kvHeads, h*kvHeads/heads, 2*dim)
			weigh(u.soft[h], u.outs[h], scores(oneHead(q, heads, h, dim), keys, pos, of), keys)
		}
	}
	require.NoError(u.t, r.Err())
	all := make([]float32, len(pos)*heads*dim)
	for h := range heads {
		u.soft[h].Finish(u.outs[h], dim)
		addHead(all, heads, h, dim, u.outs[h])
	}
	return u.toSequence(all, u.l.heads, dim), kv, q
}

func (u *unified) backward(q, kv []float32) (dq, dkv []float32) {
	lo, hi := u.mine()
	heads, kvHeads := u.l.heads/u.inner.Size(), u.l.kvHeads/u.inner.Size()
	dout := u.toHeads(u.l.dout[lo*u.l.heads*dim:hi*u.l.heads*dim], u.l.heads, dim)
	pos := span(u.block(u.outer.Rank()))
	allDQ, mineDKV := make([]float32, len(q)), make([]float32, len(kv))
	r := sp.NewGradRingOf(u.outer, kv, mineDKV, u.lens())
	for r.Next(u.t.Context()) {
		of := span(u.block(r.From()))
		if r.From() > u.outer.Rank() {
			continue // all is masked
		}
		g := make([]float32, len(r.Block()))
		for h := range heads {
			at := h * kvHeads / heads
			keys, qs, do := oneHead(r.Block(), kvHeads, at, 2*dim), oneHead(q, heads, h, dim), oneHead(dout, heads, h, dim)
			dqs, dkeys := make([]float32, len(qs)), make([]float32, len(keys))
			unweigh(u.soft[h], scores(qs, keys, pos, of), qs, keys, u.outs[h], do, dqs, dkeys)
			addHead(allDQ, heads, h, dim, dqs)
			addHead(g, kvHeads, at, 2*dim, dkeys)
		}
		r.Add(u.t.Context(), g)
	}
	require.NoError(u.t, r.Home(u.t.Context()))
	return u.toSequence(allDQ, u.l.heads, dim), u.toSequence(mineDKV, u.l.kvHeads, 2*dim)
}
