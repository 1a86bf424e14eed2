package ep

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// terms is a number for what all ranks must have alike.
func (l *Layer) terms() int64 {
	h := fnv.New64a()
	numbers := []float64{float64(l.Experts), float64(l.Top), float64(l.Width), float64(l.Scores), l.Scale, l.Capacity,
		l.Balance}
	if l.Normalize {
		numbers = append(numbers, 1)
	}
	for _, x := range append(numbers, l.Bias...) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		h.Write(b[:])
	}
	return int64(h.Sum64())
}

// count tells the ranks how many rows come to each of their experts, and sums what Balance needs.
func (p *Pass[T]) count(ctx context.Context) error {
	l := p.l
	size, local := l.Comm.Size(), l.local()
	p.way.sent, p.way.come = make([]int, size), make([]int, size)
	src, dst, terms := make([]int64, size*(local+1)), make([]int64, size*(local+1)), l.terms()
	for r := range size {
		part := src[r*(local+1):]
		part[local] = terms
		copy(part[:local], p.load.rows[r*local:])
		for _, n := range part[:local] {
			p.way.sent[r] += int(n)
		}
	}
	if err := ccl.AllToAll(ctx, l.Comm, dst, src); err != nil {
		return err
	}
	p.way.from = make([][]int64, local)
	for r := range size {
		part := dst[r*(local+1):]
		if part[local] != terms {
			return l.refuse("ranks %d and %d differ in their Layers", l.Comm.Rank(), r)
		}
		for e, n := range part[:local] {
			p.way.from[e] = append(p.way.from[e], n)
			p.way.come[r] += int(n)
		}
	}
	p.place()
	return p.sumLoads(ctx)
}

// place orders the rows that come, by rank and expert, by expert and rank.
func (p *Pass[T]) place() {
	p.way.start = make([]int, len(p.way.from)+1)
	for e, of := range p.way.from {
		p.way.start[e+1] = p.way.start[e]
		for _, n := range of {
			p.way.start[e+1] += int(n)
		}
	}
	next := slices.Clone(p.way.start[:len(p.way.from)])
	p.way.places = make([]int, 0, p.way.start[len(p.way.from)])
	for r := range p.way.come {
		for e := range p.way.from {
			for range p.way.from[e][r] {
				p.way.places = append(p.way.places, next[e])
				next[e]++
			}
		}
	}
}

// sumLoads sums the loads of all ranks, and computes the auxiliary loss.
func (p *Pass[T]) sumLoads(ctx context.Context) error {
	l := p.l
	sums := make([]float64, 3*l.Experts+1) // rows, choices and probabilities by expert; tokens
	for e, n := range p.load.rows {
		sums[e] = float64(n)
	}
	for _, e := range p.chosen {
		sums[l.Experts+int(e)]++
	}
	if l.Balance > 0 {
		for i, s := range p.scores {
			sums[2*l.Experts+i%l.Experts] += s
		}
	}
	sums[3*l.Experts] = float64(p.tokens)
	if err := ccl.AllReduce(ctx, l.Comm, sums, sums, ccl.Sum); err != nil {
		return err
	}
	for e := range p.load.rows {
		p.load.rows[e] = int64(sums[e])
	}
	if p.load.of = sums[3*l.Experts]; l.Balance == 0 || p.load.of == 0 {
		return nil
	}
	p.load.share = sums[l.Experts : 2*l.Experts]
	for e := range p.load.share {
		p.load.share[e] /= p.load.of * float64(l.Top)
		p.load.aux += l.Balance * float64(l.Experts) * p.load.share[e] * sums[2*l.Experts+e] / p.load.of
	}
	return nil
}

// Local is how many experts this rank has: they are l.Comm.Rank()*Local() and the next.
func (p *Pass[T]) Local() int { return len(p.way.from) }

// Rows are where the rows of local expert e are among those of Dispatch, counted in tokens.
func (p *Pass[T]) Rows(e int) (lo, hi int) { return p.way.start[e], p.way.start[e+1] }

// Loads are how many tokens of all ranks each expert has taken.
func (p *Pass[T]) Loads() []int64 { return p.load.rows }

// Choices are the experts of each token, best first, and their weights: Top of each for a token. A weight of 0 is that
// of a token that the expert had no room for.
func (p *Pass[T]) Choices() (experts []int32, weights []float64) { return p.chosen, p.weight }

// Volume is how many numbers this rank sends to others: forward the rows of its tokens whose experts are on other
// ranks, and those of other ranks' tokens back to them; backward as many.
func (p *Pass[T]) Volume() (forward, backward int) {
	me := p.l.Comm.Rank()
	n := (sum(p.way.sent) - p.way.sent[me] + sum(p.way.come) - p.way.come[me]) * p.l.Width
	return n, n
}

// Aux is the auxiliary loss, the same on all ranks; 0 without Balance.
func (p *Pass[T]) Aux() float64 { return p.load.aux }

// Dispatch sends each token to its experts, and returns the rows that came, by expert.
func (p *Pass[T]) Dispatch(ctx context.Context, x []T) ([]T, error) {
	if len(x) != p.tokens*p.l.Width {
		return nil, p.l.refuse("Dispatch of %d numbers: %d tokens have %d each", len(x), p.tokens, p.l.Width)
	}
	return p.out(ctx, func(row []T, i int) { copy(row, p.token(x, i)) })
}

// token is the row of x that choice i is of.
func (p *Pass[T]) token(x []T, i int) []T {
	t := i / p.l.Top
	return x[t*p.l.Width : (t+1)*p.l.Width]
}

// out sends a row for each choice, which fill makes, and returns those that came, by expert.
func (p *Pass[T]) out(ctx context.Context, fill func(row []T, i int)) ([]T, error) {
	w := p.l.Width
	src := make([]T, sum(p.way.sent)*w)
	for i, s := range p.slot {
		if s >= 0 {
			fill(src[s*w:(s+1)*w], i)
		}
	}
	dst := make([]T, len(p.way.places)*w)
	if err := ccl.AllToAllV(ctx, p.l.Comm, dst, times(p.way.come, w), src, times(p.way.sent, w)); err != nil {
		return nil, err
	}
	rows := make([]T, len(dst))
	for i, at := range p.way.places {
		copy(rows[at*w:(at+1)*w], dst[i*w:])
	}
	return rows, nil
}

// in sends the rows of this rank's experts back to where they came from, and returns those of this rank's choices.
func (p *Pass[T]) in(ctx context.Context, what string, rows []T) ([]T, error) {
	w := p.l.Width
	if len(rows) != len(p.way.places)*w {
		return nil, p.l.refuse("%s of %d numbers: %d rows have %d each", what, len(rows), len(p.way.places), w)
	}
	src := make([]T, len(rows))
	for i, at := range p.way.places {
		copy(src[i*w:(i+1)*w], rows[at*w:])
	}
	dst := make([]T, sum(p.way.sent)*w)
	if err := ccl.AllToAllV(ctx, p.l.Comm, dst, times(p.way.sent, w), src, times(p.way.come, w)); err != nil {
		return nil, err
	}
	return dst, nil
}

// Combine takes what the experts have made of the rows of Dispatch, and returns of each token the sum
// over its experts, each times its weight: 0 where no expert had room.
func (p *Pass[T]) Combine(ctx context.Context, out []T) ([]T, error) {
	back, err := p.in(ctx, "Combine", out)
	if err != nil {
		return nil, err
	}
	p.back = back
	y := make([]T, p.tokens*p.l.Width)
	for i, s := range p.slot {
		if s < 0 {
			continue
		}
		to, w := p.token(y, i), T(p.weight[i])
		for j, x := range p.row(back, s) {
			to[j] += T(w * x)
		}
	}
	return y, nil
}

// row is that of a slot among the rows sent.
func (p *Pass[T]) row(rows []T, slot int) []T {
	return rows[slot*p.l.Width : (slot+1)*p.l.Width]
}

// CombineGrad takes the gradient of what Combine returned, and returns that of what it was given.
func (p *Pass[T]) CombineGrad(ctx context.Context, dy []T) ([]T, error) {
	if len(dy) != p.tokens*p.l.Width || len(p.back) != sum(p.way.sent)*p.l.Width {
		return nil, p.l.refuse("CombineGrad of %d numbers: it comes after Combine, and %d tokens have %d each", len(dy),
			p.tokens, p.l.Width)
	}
	p.dw = make([]float64, len(p.slot))
	return p.out(ctx, func(row []T, i int) {
		w, of, dot := T(p.weight[i]), p.row(p.back, p.slot[i]), 0.
		for j, d := range p.token(dy, i) {
			row[j] = w * d
			dot += float64(float64(d) * float64(of[j]))
		}
		p.dw[i] = dot
	})
}

// DispatchGrad takes the gradient of the rows of Dispatch, and returns that of the tokens.
func (p *Pass[T]) DispatchGrad(ctx context.Context, drows []T) ([]T, error) {
	back, err := p.in(ctx, "DispatchGrad", drows)
	if err != nil {
		return nil, err
	}
	dx := make([]T, p.tokens*p.l.Width)
	for i, s := range p.slot {
		if s < 0 {
			continue
		}
		to := p.token(dx, i)
		for j, d := range p.row(back, s) {
			to[j] += d
		}
	}
	return dx, nil
}

// RouteGrad returns the gradient of the logits, after CombineGrad, without which it is that of the
// auxiliary loss alone. Of that loss it has as much as makes the mean over the ranks of l.Comm its
// gradient, as losses are averaged by package ddp.
func (p *Pass[T]) RouteGrad() []T {
	l := p.l
	d := make([]T, len(p.scores))
	ds := make([]float64, l.Experts)
	scale := l.Scale
	if scale == 0 {
		scale = 1
	}
	for t := range p.tokens {
		s := p.scores[t*l.Experts : (t+1)*l.Experts]
		clear(ds)
		for e, f := range p.load.share {
			ds[e] = l.Balance * float64(l.Experts) * f / p.load.of * float64(l.Comm.Size())
		}
		if p.dw != nil {
			chosen, dw := p.chosen[t*l.Top:(t+1)*l.Top], p.dw[t*l.Top:(t+1)*l.Top]
			total, mean := 1., 0.
			if l.Normalize {
				total = 0
				for k, e := range chosen {
					total += s[e]
					mean += float64(dw[k] * s[e])
				}
				if total == 0 { // so are the gradients, which are times the scores
					total = 1
				}
				mean /= total
			}
			for k, e := range chosen {
				ds[e] += scale * (dw[k] - mean) / total
			}
		}
		mean := 0.
		for e, x := range s {
			mean += float64(ds[e] * x)
		}
		for e, x := range s {
			if l.Scores == Sigmoid {
				d[t*l.Experts+e] = T(ds[e] * x * (1 - x))
			} else {
				d[t*l.Experts+e] = T((ds[e] - mean) * x)
			}
		}
	}
	return d
}

func sum(list []int) (all int) {
	for _, n := range list {
		all += n
	}
	return all
}

// times are the numbers of list, times w.
func times(list []int, w int) []int {
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = n * w
	}
	return out
}
