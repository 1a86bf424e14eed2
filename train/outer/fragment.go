package outer

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/quant"
)

// fragment is a part of the parameters that is exchanged in one go.
type fragment struct {
	parts []part
	n     int
	head  []int64 // a part of Outer.head

	delta  []float32 // how far this rank has come, while the exchange is under way
	mean   []float32 // that of all ranks; without a Delay the same memory
	others []float32 // of Eager: the last mean without this rank's part
	guess  []float32 // the outer parameters as this rank has estimated them

	reduce *quant.Reducer
	tags   []uint64
	done   func(ctx context.Context) error // waits for the exchange; nil: none was issued here
}

// The numbers of a fragment in its head: the inner step in which its exchange must be done, which exchange
// of all that is, from 1, or 0 for none, and how many have moved it.
const (
	due = iota
	turn
	rounds
	places
)

// part is a piece of a unit.
type part struct {
	local, params, moments []float32
	at                     int // where it lies in the fragment
}

// fragment makes that of a number.
func (u *Outer) fragment(i, total int) *fragment {
	n := u.o.Fragments
	f := &fragment{head: u.head[heads+i*places : heads+(i+1)*places]}
	from, to, at := total*i/n, total*(i+1)/n, 0
	for k, x := range u.local {
		lo, hi := min(max(from-at, 0), len(x)), min(max(to-at, 0), len(x))
		if u.o.Stride {
			lo, hi = 0, 0
			if k%n == i {
				hi = len(x)
			}
		}
		if at += len(x); lo < hi {
			f.parts = append(f.parts, part{x[lo:hi], u.params[k][lo:hi], u.moments[k][lo:hi], f.n})
			f.n += hi - lo
		}
	}
	f.delta = make([]float32, f.n)
	if f.mean = f.delta; u.o.Delay > 0 {
		f.mean = make([]float32, f.n)
	}
	if u.o.Eager {
		f.others, f.guess = make([]float32, f.n), make([]float32, f.n)
	}
	return f
}

// of is a part's place in a vector of the fragment.
func (p *part) of(x []float32) []float32 { return x[p.at : p.at+len(p.local)] }

// hash is that of the outer state.
func (f *fragment) hash() uint64 {
	var all [][]float32
	for i := range f.parts {
		all = append(all, f.parts[i].params, f.parts[i].moments)
	}
	return ddp.Hash(all...) + uint64(f.head[rounds])
}

// measure sets the difference to how far this rank has come.
func (f *fragment) measure() {
	for i := range f.parts {
		p := &f.parts[i]
		d := p.of(f.delta)
		for i, x := range p.params {
			d[i] = x - p.local[i]
		}
	}
}

// begin starts the exchange of f.
func (u *Outer) begin(f *fragment) {
	if u.o.Delay > 0 { // else issue does
		f.measure()
	}
	u.head[turns]++
	f.head[turn], f.head[due] = u.head[turns], u.head[inner]+int64(u.o.Delay)
	if u.o.Eager {
		u.estimate(f)
	}
	u.issue(f)
}

// issue sends the difference of f on its way. Without a Delay it is measured here: an exchange that has failed leaves
// anything in its place, and no inner step was made since.
func (u *Outer) issue(f *fragment) {
	if u.o.Delay > 0 {
		copy(f.mean, f.delta)
	} else {
		f.measure()
	}
	me := u.c.Rank()
	u.q.Do(func() error { f.tags[me] = f.hash(); return nil }) // which nobody changes while it is under way
	f.done = f.reduce.Queue(u.q, f.mean).Wait
}

// finish waits for the exchange of f, and makes the outer step.
func (u *Outer) finish(ctx context.Context, f *fragment) error {
	if f.done == nil {
		return fmt.Errorf("outer: exchange %d was restored, and not begun again: call On", f.head[turn])
	}
	began := time.Now()
	err := f.done(ctx)
	u.stats.Waited += time.Since(began)
	if err != nil {
		if u.c.Abort(err); u.c.Err() != nil { // this rank has skipped what the others do next
			err = u.c.Err()
		}
		return fmt.Errorf("outer: exchange %d: %w", f.head[turn], err)
	}
	u.stats.Bytes += f.reduce.Bytes() + 8*int64(u.c.Size()-1)
	number := f.head[turn]
	f.done, f.head[turn], f.head[due] = nil, 0, 0 // on all ranks, whatever it has come to
	if err := differ(f.tags); err != nil {
		return fmt.Errorf("outer: exchange %d: %w", number, err)
	}
	if !f.reduce.Finite() {
		return fmt.Errorf("outer: exchange %d: %w", number, ErrNotFinite)
	}
	h := optim.SGD{LR: u.o.LR, Momentum: u.o.Momentum, Nesterov: u.o.Momentum > 0}
	for i := range f.parts {
		p := &f.parts[i]
		if err := optim.ApplySGD(h, p.params, p.of(f.mean), p.moments); err != nil {
			return fmt.Errorf("outer: %w", err)
		}
	}
	f.head[rounds]++
	u.stats.Rounds++
	u.mix(f)
	if u.o.Eager {
		share := 1 / float32(u.c.Size())
		for i, m := range f.mean {
			f.others[i] = m - float32(share*f.delta[i])
		}
	}
	return nil
}

// differ is an error if some tags are not the most common one.
func differ(tags []uint64) error {
	count, most := map[uint64]int{}, tags[0]
	for _, h := range tags {
		count[h]++
	}
	for _, h := range tags {
		if count[h] > count[most] {
			most = h
		}
	}
	var odd []int
	for r, h := range tags {
		if h != most {
			odd = append(odd, r)
		}
	}
	if odd == nil {
		return nil
	}
	return fmt.Errorf("ranks %d of %d hold other bits of the outer parameters than the rest", odd, len(tags))
}

// mix has the rank go on from the new outer parameters and its own.
func (u *Outer) mix(f *fragment) {
	a := u.o.Mix
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case u.o.Eager:
			guess := p.of(f.guess)
			for i, x := range p.params {
				p.local[i] += x - guess[i]
			}
		case a == 0:
			copy(p.local, p.params)
		default:
			for i, x := range p.params {
				p.local[i] = float32(a*p.local[i]) + float32((1-a)*x)
			}
		}
	}
}

// estimate has the rank go on from the outer parameters that the mean would give if the other ranks came as
// far as in the exchange before. What it has done since the difference was taken is nothing yet.
func (u *Outer) estimate(f *fragment) {
	rate, mu, share := float32(u.o.LR), float32(u.o.Momentum), 1/float32(u.c.Size())
	if f.head[rounds] == 0 { // nothing is known of the others
		share = 1
	}
	for i := range f.parts {
		p := &f.parts[i]
		d, others, guess := p.of(f.delta), p.of(f.others), p.of(f.guess)
		for i, x := range p.params {
			g := others[i] + float32(share*d[i])
			g += float32(mu * (float32(mu*p.moments[i]) + g)) // Nesterov's, as optim.ApplySGD
			guess[i] = x - float32(rate*g)
		}
		copy(p.local, guess)
	}
}
