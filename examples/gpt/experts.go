package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/ep"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// sparse is what the flags say about experts, beside the model's.
type sparse struct {
	ranks int     // that share the experts, of those of -dp
	rate  float64 // of the bias
}

func (s *sparse) flags(f *flag.FlagSet, m *gpt.Sparse) {
	f.IntVar(&m.Experts, "experts", 0, "`experts` in the place of each block's MLP, of which a token takes -top; 0: none")
	f.IntVar(&m.Top, "top", 2, "with -experts: how many `experts` a token takes")
	f.IntVar(&s.ranks, "ep", 1, "with -experts: so many `ranks` of -dp have a part of the experts each")
	f.BoolVar(&m.Shared, "shared", false, "with -experts: keep the MLP beside them, which computes while tokens travel")
	f.Float64Var(&s.rate, "balance", 1e-3,
		"with -experts: by this `number` the bias of an expert rises where it had too few tokens in a step, or falls")
}

// check says what is wrong with the flags of experts.
func (s *sparse) check(c *config, set map[string]bool) error {
	m := &c.Sparse
	if c.draws.generate { // which has the checkpoint's
		return nil
	}
	if m.Experts == 0 {
		m.Top = 0
		for _, name := range []string{"top", "ep", "shared", "balance"} {
			if set[name] {
				return fmt.Errorf("-%s is about experts: give -experts", name)
			}
		}
		return nil
	}
	switch {
	case m.Top > m.Experts:
		return fmt.Errorf("-top %d of -experts %d: a token takes each once at most", m.Top, m.Experts)
	case !(s.rate >= 0) || math.IsInf(s.rate, 0):
		return fmt.Errorf("-balance %v: give 0 or more", s.rate)
	case c.apart.on():
		return errors.New("-experts with -outer: the experts of sites would not be averaged; leave one of them out")
	case c.norms:
		return errors.New("-norms knows no experts: leave one of them out")
	}
	return s.divides(c)
}

// divides says what of the layout does not go with the experts of the model.
func (s *sparse) divides(c *config) error {
	if n := c.Sparse.Experts; n%s.ranks != 0 {
		return fmt.Errorf("-ep %d does not divide -experts %d; -ep %d does", s.ranks, n, nearest(n, s.ranks))
	}
	return nil
}

// experts are those that this rank has of each layer. Ranks of tp have the same experts and the same tokens, and of
// each expert the part that they would have of an MLP. What they make of tokens, and the gradients of these and of the
// router, are parts of sums over these ranks.
type experts[T gpt.Float] struct {
	c      gpt.Config
	k      gpt.Kernels[T]
	split  *split // whose context the exchanges have
	layers []ep.Layer
	rate   float64
	bias   []float32 // of each layer's experts where they are chosen
	loads  []int64   // in this step, tokens
	took   times     // of exchanges in this step: dtc, dtx
}

func newExperts[T gpt.Float](k gpt.Kernels[T], c *config, s *split, comm *ccl.Comm) *experts[T] {
	n := c.Layers * c.Sparse.Experts
	e := &experts[T]{c: c.Config, k: k, split: s, rate: c.experts.rate, bias: make([]float32, n), loads: make([]int64, n)}
	for range c.Layers {
		e.layers = append(e.layers, ep.Layer{Comm: comm, Experts: c.Sparse.Experts, Top: c.Sparse.Top, Width: c.Width,
			Normalize: true, Bias: make([]float64, c.Sparse.Experts)})
	}
	return e
}

// routed is what Forward keeps for Backward.
type routed[T gpt.Float] struct {
	pass          *ep.Pass[T]
	layer         int
	rows, h, s, g []T // by expert: tokens, and what an MLP keeps
}

// each calls f for the experts of this rank that have rows, with the place of these.
func (r *routed[T]) each(f func(e, lo, hi int)) {
	for e := range r.pass.Local() {
		if lo, hi := r.pass.Rows(e); lo < hi {
			f(e, lo, hi)
		}
	}
}

// during calls exchange, and beside meanwhile, if there is one.
func (e *experts[T]) during(beside func(), exchange func() ([]T, error)) (x []T, err error) {
	start := time.Now()
	if beside == nil {
		x, err = exchange()
		e.took.dtc += time.Since(start)
		e.took.dtx += time.Since(start)
		return x, err
	}
	err = errors.New("an exchange of tokens has ended its goroutine")
	done := make(chan time.Duration, 1)
	go func() {
		defer close(done)
		x, err = exchange()
		done <- time.Since(start)
	}()
	beside()
	began := time.Now()
	e.took.dtc += <-done
	e.took.dtx += time.Since(began)
	return x, err
}

// Forward is gpt.Experts'.
func (e *experts[T]) Forward(layer int, p [][]T, x, y []T, beside func()) (any, error) {
	ctx, l, w, n := e.split.ctx, &e.layers[layer], e.c.Width, e.c.Sparse.Experts
	for i := range l.Bias {
		l.Bias[i] = float64(e.bias[layer*n+i])
	}
	tokens := len(x) / w
	logits := make([]T, tokens*n)
	e.k.Mul(false, false, tokens, n, w, x, p[0], logits)
	r := &routed[T]{layer: layer}
	var err error
	if r.pass, err = ep.Route(ctx, l, logits); err != nil {
		return nil, err
	}
	if r.rows, err = e.during(beside, func() ([]T, error) { return r.pass.Dispatch(ctx, x) }); err != nil {
		return nil, err
	}
	hidden := 4 * w / e.split.Size()
	f := func(width int) []T { return make([]T, len(r.rows)/w*width) }
	r.h, r.s, r.g = f(hidden), f(hidden), f(hidden)
	out := f(w)
	r.each(func(i, lo, hi int) {
		a, b := lo*hidden, hi*hidden
		e.k.Mul(false, false, hi-lo, hidden, w, r.rows[lo*w:hi*w], p[1+2*i], r.h[a:b])
		e.k.Gelu(r.g[a:b], r.s[a:b], r.h[a:b])
		e.k.Mul(false, false, hi-lo, w, hidden, r.g[a:b], p[2+2*i], out[lo*w:hi*w])
	})
	sum, err := e.during(nil, func() ([]T, error) { return r.pass.Combine(ctx, out) })
	copy(y, sum)
	return r, err
}

// Backward is gpt.Experts'.
func (e *experts[T]) Backward(kept any, p, g [][]T, x, dy, dx []T, beside func()) error {
	ctx, r, w, n := e.split.ctx, kept.(*routed[T]), e.c.Width, e.c.Sparse.Experts
	dout, err := e.during(beside, func() ([]T, error) { return r.pass.CombineGrad(ctx, dy) })
	if err != nil {
		return err
	}
	hidden := 4 * w / e.split.Size()
	drows, dh := make([]T, len(dout)), make([]T, len(r.h))
	r.each(func(i, lo, hi int) {
		a, b := lo*hidden, hi*hidden
		d, in := dout[lo*w:hi*w], r.rows[lo*w:hi*w]
		e.k.Mul(true, false, hidden, w, hi-lo, r.g[a:b], d, g[2+2*i])
		e.k.Mul(false, true, hi-lo, hidden, w, d, p[2+2*i], dh[a:b])
		e.k.GeluBack(dh[a:b], r.h[a:b], r.s[a:b])
		e.k.Mul(true, false, w, hidden, hi-lo, in, dh[a:b], g[1+2*i])
		e.k.Mul(false, true, hi-lo, w, hidden, dh[a:b], p[1+2*i], drows[lo*w:hi*w])
	})
	back, err := e.during(nil, func() ([]T, error) { return r.pass.DispatchGrad(ctx, drows) })
	if err != nil {
		return err
	}
	copy(dx, back)
	tokens, dlogits := len(x)/w, r.pass.RouteGrad()
	e.k.Mul(true, false, w, n, tokens, x, dlogits, g[0])
	e.k.Mul(false, true, tokens, w, n, dlogits, p[0], dx)
	for i, k := range r.pass.Loads() {
		e.loads[r.layer*n+i] += k
	}
	return nil
}

// step ends a step: the bias goes by the tokens that the experts had on all ranks of world. Of ranks that share the
// experts, or the tokens, which all know their loads, one counts. Nil does nothing.
func (e *experts[T]) step(ctx context.Context, world *ccl.Comm, counts bool) (took times, err error) {
	if e == nil {
		return took, nil
	}
	took, e.took = e.took, took
	defer clear(e.loads)
	if !counts {
		clear(e.loads)
	}
	if e.rate == 0 {
		return took, nil
	}
	if err := ccl.AllReduce(ctx, world, e.loads, e.loads, ccl.Sum); err != nil {
		return took, err
	}
	n := e.c.Sparse.Experts
	for l := range e.layers {
		bias, at := e.layers[l].Bias, e.bias[l*n:(l+1)*n]
		for i, b := range at {
			bias[i] = float64(b)
		}
		if err := ep.Rebalance(bias, e.loads[l*n:(l+1)*n], e.rate); err != nil {
			return took, err
		}
		for i, b := range bias {
			at[i] = float32(b)
		}
	}
	return took, nil
}

// begun are the parameters of this rank's experts of a layer before the first step.
func (e *experts[T]) begun(layer int, seed uint64) (full [][]T, err error) {
	of := e.layers[layer].Comm
	local := e.c.Sparse.Experts / of.Size()
	for i := range local {
		for j, p := range gpt.InitExpert[T](e.c, layer, of.Rank()*local+i, seed) {
			if p, err = tp.Shard(layouts(e.c.Width)[4+j], p, e.split.Rank(), e.split.Size()); err != nil {
				return nil, err
			}
			full = append(full, p)
		}
	}
	return full, nil
}

// withExperts gives a trainer the experts of its blocks: their parameters are a unit for each block, behind the others,
// and are averaged over the ranks that have the same ones alone. It is collective.
func withExperts(ctx context.Context, tr *trainer, o zero.Options) error {
	c, shares := tr.cfg, tr.mesh.Comm("ep")
	rates := []float64{c.experts.rate, -c.experts.rate}
	if err := ccl.AllReduce(ctx, tr.world, rates, rates, ccl.Max); err != nil {
		return err
	}
	if rates[0] != -rates[1] { // experts would have other biases on other ranks, or step other calls
		return fmt.Errorf("-balance differs between ranks: from %v to %v", -rates[1], rates[0])
	}
	tr.experts = newExperts(kernels(), c, tr.split, shares)
	tr.net.Experts = tr.experts
	m := &mixed{store: tr.model, n: len(tr.units), share: 1 / float32(shares.Size()), clip: c.clip}
	m.block = make([]int, len(tr.units))
	tr.model = m
	var lens [][]int
	for i, u := range tr.units {
		if m.block[i] = -1; u == 0 || u == c.Layers+1 {
			continue
		}
		m.block[i] = len(lens)
		var unit []int
		for range c.Sparse.Experts / shares.Size() * 2 {
			unit = append(unit, 4*c.Width*c.Width/c.tp)
		}
		lens, tr.all = append(lens, unit), append(tr.all, c.Layers+1+u)
	}
	over, err := tr.mesh.Join(ctx, "dp", "sp")
	if err != nil {
		return err
	}
	if o.NormOver, err = tr.mesh.Join(ctx, "ep", "pp", "tp"); err != nil {
		return err
	}
	o.NormOf = func(int, int) bool { return true }
	if m.experts, err = newStore(ctx, over, c, lens, &o); err != nil {
		return err
	}
	// Step of mixed makes the calls of one store within those of the other, where this rank has a part of both.
	if n := sum(lens[0]); c.stage > 0 && over.Size() > 1 && len(m.experts.Shard(0))*(over.Size()-1) >= n {
		return fmt.Errorf("-zero %d: the %d parameters of the experts of a layer are too few for %d ranks to have a part each; give a greater -width, or -zero 0",
			c.stage, n, over.Size())
	}
	return nil
}

// mixed is a store whose blocks have experts, in a store of their own: those of other ranks.
type mixed struct {
	store
	experts store
	n       int     // units of the first; those of experts come after them
	block   []int   // by unit of the first: its experts', or -1
	share   float32 // what the loss, a mean over ranks, makes of a sum over the ranks that share experts
	clip    float64
}

// Params and Grads are those of a unit and of its experts.
func (m *mixed) Params(ctx context.Context, i int) ([][]float32, error) {
	return m.both(i, func(s store, i int) ([][]float32, error) { return s.Params(ctx, i) })
}

func (m *mixed) Grads(ctx context.Context, i int) ([][]float32, error) {
	return m.both(i, func(s store, i int) ([][]float32, error) { return s.Grads(ctx, i) })
}

func (m *mixed) both(i int, of func(s store, i int) ([][]float32, error)) ([][]float32, error) {
	p, err := of(m.store, i)
	if err != nil || m.block[i] < 0 {
		return p, err
	}
	more, err := of(m.experts, m.block[i])
	return append(p[:len(p):len(p)], more...), err
}

func (m *mixed) Release(i int) {
	m.store.Release(i)
	if m.block[i] >= 0 {
		m.experts.Release(m.block[i])
	}
}

func (m *mixed) Reduce(i int) error {
	if err := m.store.Reduce(i); err != nil || m.block[i] < 0 {
		return err
	}
	return m.experts.Reduce(m.block[i])
}

// Step updates both by the norm of both, which the one knows when it updates, and the other within that: on each rank,
// since each has a part of the experts.
func (m *mixed) Step(ctx context.Context, u zero.Update[float32]) error {
	by, done := float32(1), false
	rest := func() error {
		done = true
		first := true
		return m.store.Step(ctx, func(p zero.Piece, w, g []float32) error {
			if first {
				by, first = m.factor(), false
			}
			mat.Scale(g, by)
			return u(p, w, g)
		})
	}
	return m.experts.Step(ctx, func(p zero.Piece, w, g []float32) error {
		if !done {
			if err := rest(); err != nil {
				return err
			}
			by = m.factor()
		}
		mat.Scale(g, by*m.share)
		p.Unit += m.n
		return u(p, w, g)
	})
}

// Norm is that of all gradients of the last step.
func (m *mixed) Norm() float64 {
	a, b := m.store.Norm(), m.experts.Norm()*float64(m.share)
	return math.Sqrt(float64(a*a) + float64(b*b)) // math.Hypot has other bits on other machines
}

// factor is what gradients are clipped by.
func (m *mixed) factor() float32 {
	if m.clip == 0 {
		return 1
	}
	return float32(optim.ClipFactor(m.Norm(), m.clip))
}

func (m *mixed) of(i int) (store, int) {
	if i < m.n {
		return m.store, i
	}
	return m.experts, i - m.n
}

func (m *mixed) Load(ctx context.Context, i int, full [][]float32, root int) error {
	s, i := m.of(i)
	return s.Load(ctx, i, full, root)
}

func (m *mixed) Loaded(ctx context.Context) error {
	return errors.Join(m.store.Loaded(ctx), m.experts.Loaded(ctx))
}

func (m *mixed) Shard(i int) []float32 {
	s, i := m.of(i)
	return s.Shard(i)
}

func (m *mixed) Pieces(i int) []zero.Piece {
	s, i := m.of(i)
	return s.Pieces(i)
}

func (m *mixed) Bytes() zero.Bytes {
	a, b := m.store.Bytes(), m.experts.Bytes()
	a.Params, a.Grads, a.Master, a.Buffers = a.Params+b.Params, a.Grads+b.Grads, a.Master+b.Master, a.Buffers+b.Buffers
	return a
}

func (m *mixed) Stats() zero.Stats {
	a, b := m.store.Stats(), m.experts.Stats()
	return zero.Stats{Reduced: a.Reduced + b.Reduced, Gathered: a.Gathered + b.Gathered, Comm: a.Comm + b.Comm,
		Exposed: a.Exposed + b.Exposed}
}

func (m *mixed) Close() error {
	err := m.store.Close()
	if m.experts != nil {
		err = errors.Join(err, m.experts.Close())
	}
	return err
}
