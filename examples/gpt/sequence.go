package main

import (
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/sp"
)

// sequences are a micro batch's, each of which is split over the ranks of c.
type sequences struct {
	split *split // whose context the exchanges have
	c     *ccl.Comm
	cfg   gpt.Config // with the heads and the width that this rank of tp has
	rows  int
}

// ulysses is attention by package sp's ToHeads and ToSequence: each rank computes a part of the
// heads on whole sequences.
type ulysses struct {
	sequences
	net *gpt.Net[float32]
}

// whole is what Forward keeps: queries, keys and values of whole sequences, and the weights.
type whole struct{ qkv, att []float32 }

// heads turns x, this rank's tokens of k vectors of the model's width each, into [rows][Context] tokens of k vectors of
// this rank's heads.
func (u *ulysses) heads(x []float32, k int) ([]float32, error) {
	t, h, d, p := u.cfg.Context, u.cfg.Heads, u.cfg.Width/u.cfg.Heads, u.c.Size()
	in, out, y := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	each := k * u.rows * d // of a token and head: [k][rows][d]
	u.move(in, x, k, h, t/p, true)
	if err := sp.ToHeads(u.split.ctx, u.c, sp.Shape{Seq: t, Heads: h, Dim: each}, out, in, y); err != nil {
		return nil, err
	}
	u.move(out, y, k, h/p, t, false)
	return y, nil
}

// tokens is the inverse of heads, into x.
func (u *ulysses) tokens(x, y []float32, k int) error {
	t, h, d, p := u.cfg.Context, u.cfg.Heads, u.cfg.Width/u.cfg.Heads, u.c.Size()
	in, out, scratch := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	u.move(in, y, k, h/p, t, true)
	if err := sp.ToSequence(u.split.ctx, u.c, sp.Shape{Seq: t, Heads: h, Dim: k * u.rows * d}, out, in,
		scratch); err != nil {
		return err
	}
	u.move(out, x, k, h, t/p, false)
	return nil
}

// move copies between what package sp exchanges, [tokens][heads][k][rows][d], and activations,
// [rows][tokens][k][heads][d].
func (u *ulysses) move(exchanged, x []float32, k, h, tokens int, out bool) {
	d := u.cfg.Width / u.cfg.Heads
	for r := range u.rows {
		for t := range tokens {
			for j := range k {
				for i := range h {
					a := exchanged[(((t*h+i)*k+j)*u.rows+r)*d:][:d]
					b := x[(((r*tokens+t)*k+j)*h+i)*d:][:d]
					if out {
						copy(a, b)
					} else {
						copy(b, a)
					}
				}
			}
		}
	}
}

func (u *ulysses) Forward(qkv, y []float32) (any, error) {
	z, err := u.heads(qkv, 3)
	if err != nil {
		return nil, err
	}
	h := u.cfg.Heads / u.c.Size()
	w := &whole{z, make([]float32, u.rows*h*u.cfg.Context*u.cfg.Context)}
	o := make([]float32, len(z)/3)
	u.net.Attend(z, o, w.att, h)
	return w, u.tokens(y, o, 1)
}

func (u *ulysses) Backward(kept any, _, dy, dqkv []float32) error {
	w := kept.(*whole)
	do, err := u.heads(dy, 1)
	if err != nil {
		return err
	}
	dz := make([]float32, len(w.qkv))
	u.net.AttendBack(w.qkv, w.att, do, dz, u.cfg.Heads/u.c.Size())
	return u.tokens(dqkv, dz, 3)
}

// ring is ring attention: keys and values go around, and each rank has the queries of its own tokens.
type ring struct{ sequences }

// state is what Forward keeps of each row and head: the running softmax, and what attention made.
type state struct {
	soft []*sp.Softmax
	out  [][]float32
}

// keys are this rank's keys and values, [rows][tokens][2*width].
func (g *ring) keys(qkv []float32) []float32 {
	w := g.cfg.Width
	kv := make([]float32, len(qkv)/3*2)
	gpt.Take(kv, qkv, len(kv)/(2*w), 3*w, w, 2*w)
	return kv
}

// scores are those of queries for keys, masked where the keys come later; the blocks before this rank's are whole.
func (g *ring) scores(s, q, k []float32, n, d int, own bool) {
	clear(s)
	mat.Mul(false, true, n, n, d, q, k, s)
	mat.Scale(s, float32(1/math.Sqrt(float64(d))))
	for t := 0; own && t < n; t++ {
		for u := t + 1; u < n; u++ {
			s[t*n+u] = float32(math.Inf(-1))
		}
	}
}

func (g *ring) Forward(qkv, y []float32) (any, error) {
	w, h := g.cfg.Width, g.cfg.Heads
	n, d := g.cfg.Context/g.c.Size(), w/h
	st := &state{}
	for range g.rows * h {
		st.soft, st.out = append(st.soft, sp.NewSoftmax(n)), append(st.out, make([]float32, n*d))
	}
	q, k, v, s := make([]float32, n*d), make([]float32, n*d), make([]float32, n*d), make([]float32, n*n)
	r := sp.NewRing(g.c, g.keys(qkv))
	for r.Next(g.split.ctx) {
		if r.From() > g.c.Rank() { // tokens that come later
			continue
		}
		kv := r.Block()
		for row := range g.rows {
			for i := range h {
				gpt.Take(q, qkv[row*n*3*w:], n, 3*w, i*d, d)
				gpt.Take(k, kv[row*n*2*w:], n, 2*w, i*d, d)
				gpt.Take(v, kv[row*n*2*w:], n, 2*w, w+i*d, d)
				g.scores(s, q, k, n, d, r.From() == g.c.Rank())
				o := st.out[row*h+i]
				st.soft[row*h+i].Add(s, n, o, d)
				mat.Mul(false, false, n, d, n, s, v, o)
			}
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	for j, o := range st.out {
		st.soft[j].Finish(o, d)
		gpt.Put(y[j/h*n*w:], o, n, w, j%h*d, d)
	}
	return st, nil
}

func (g *ring) Backward(kept any, qkv, dy, dqkv []float32) error {
	st := kept.(*state)
	w, h := g.cfg.Width, g.cfg.Heads
	n, d := g.cfg.Context/g.c.Size(), w/h
	f := func(k int) []float32 { return make([]float32, k) }
	q, k, v, do, dk, dv, s, ds := f(n*d), f(n*d), f(n*d), f(n*d), f(n*d), f(n*d), f(n*n), f(n*n)
	scale := float32(1 / math.Sqrt(float64(d)))
	own := g.keys(qkv)
	dkv, add := f(len(own)), f(len(own))
	queries := f(len(dy)) // their gradients, [rows][heads][tokens][d]
	r := sp.NewGradRing(g.c, own, dkv)
	for r.Next(g.split.ctx) {
		if r.From() > g.c.Rank() {
			continue
		}
		kv := r.Block()
		for row := range g.rows {
			for i := range h {
				j := row*h + i
				gpt.Take(q, qkv[row*n*3*w:], n, 3*w, i*d, d)
				gpt.Take(k, kv[row*n*2*w:], n, 2*w, i*d, d)
				gpt.Take(v, kv[row*n*2*w:], n, 2*w, w+i*d, d)
				gpt.Take(do, dy[row*n*w:], n, w, i*d, d)
				g.scores(s, q, k, n, d, r.From() == g.c.Rank())
				st.soft[j].Weights(s, n)
				clear(dv)
				mat.Mul(true, false, n, d, n, s, do, dv)
				clear(ds)
				mat.Mul(false, true, n, n, d, do, v, ds)
				for t := range n { // the rows of dO O are what all blocks' weights share
					dot := mat.Dot(do[t*d:t*d+d], st.out[j][t*d:t*d+d])
					for u := range n {
						ds[t*n+u] = (ds[t*n+u] - dot) * s[t*n+u] * scale
					}
				}
				mat.Mul(false, false, n, d, n, ds, k, queries[j*n*d:][:n*d])
				clear(dk)
				mat.Mul(true, false, n, d, n, ds, q, dk)
				gpt.Put(add[row*n*2*w:], dk, n, 2*w, i*d, d)
				gpt.Put(add[row*n*2*w:], dv, n, 2*w, w+i*d, d)
			}
		}
		r.Add(g.split.ctx, add)
	}
	if err := r.Home(g.split.ctx); err != nil {
		return err
	}
	for j := range g.rows * h {
		gpt.Put(dqkv[j/h*n*3*w:], queries[j*n*d:], n, 3*w, j%h*d, d)
	}
	gpt.Put(dqkv, dkv, len(dkv)/(2*w), 3*w, w, 2*w)
	return nil
}
