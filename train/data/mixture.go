package data

import (
	"fmt"
	"iter"
	"math"
)

// Mixture draws from several sources by weight, without end: Megatron's blended dataset. Of each
// source the items come in the order of a Sampler of that source alone, epoch after epoch, each
// once before one comes again.
//
// What comes at a position follows from the position, the sources and the seed. So a run goes on
// from the number of items that all ranks have consumed, on any number of ranks, without a list and
// without state; finding the position takes a few milliseconds.
type Mixture struct {
	// Sources are at most 4,096.
	Sources []Source
	// Rank, Size and Seed are as in a Sampler.
	Rank, Size int
	Seed       uint64
}

// Source is one of a Mixture.
type Source struct {
	// N is the number of its items.
	N int
	// Weight is its share of what is drawn, relative to the other weights; 0: none. Of 65,536 draws that begin at a
	// multiple of that, its share is exact, rounded, and it is at least one.
	Weight float64
}

// Draw is an item of a source, in an epoch of that source.
type Draw struct{ Source, Item, Epoch int }

// mostSources bounds how long Shares takes, which is quadratic.
const mostSources = 4096

// period is after how many draws the shares are exact.
const period = 1 << 16

// Check says what is wrong with m.
func (m Mixture) Check() error {
	sum, most := 0., 0.
	for i, s := range m.Sources {
		if !(s.Weight >= 0) || math.IsInf(s.Weight, 0) || s.N < 0 || s.N == 0 && s.Weight > 0 {
			return fmt.Errorf("data: source %d of a Mixture has %d items and weight %v", i, s.N, s.Weight)
		}
		sum, most = sum+s.Weight, max(most, s.Weight)
	}
	switch {
	case len(m.Sources) > mostSources:
		return fmt.Errorf("data: a Mixture of %d sources; at most %d", len(m.Sources), mostSources)
	case most == 0 || math.IsInf(sum, 0):
		return fmt.Errorf("data: a Mixture whose weights are %v together", sum)
	case m.Size < 0 || m.Rank < 0 || m.Rank >= m.ranks():
		return fmt.Errorf("data: a Mixture for rank %d of %d", m.Rank, m.Size)
	}
	return nil
}

func (m Mixture) ranks() int { return max(m.Size, 1) }

// Shares is how many of 65,536 draws are of each source: its weight, rounded such that the sum is right (the method of
// largest remainders), but at least one where the weight is not 0. It is nil if Check finds something wrong.
func (m Mixture) Shares() []int {
	if m.Check() != nil {
		return nil
	}
	sum, given := 0., 0
	for _, s := range m.Sources {
		sum += s.Weight
	}
	shares, over := make([]int, len(m.Sources)), make([]float64, len(m.Sources))
	for i, s := range m.Sources {
		if s.Weight > 0 {
			exact := float64(s.Weight / sum * period)
			shares[i] = max(int(exact), 1)
			over[i] = exact - float64(shares[i])
		} else {
			over[i] = math.Inf(-1)
		}
		given += shares[i]
	}
	for ; given != period; given += step(given) {
		best := -1 // who gets one more, or one less
		for i := range shares {
			if given < period && (best < 0 || over[i] > over[best]) || given > period && shares[i] > 1 &&
				(best < 0 || over[i] < over[best]) {
				best = i
			}
		}
		shares[best] += step(given)
		over[best] -= float64(step(given))
	}
	return shares
}

// step is towards period.
func step(given int) int {
	if given < period {
		return 1
	}
	return -1
}

// From yields this rank's draws, each with the number of items that all ranks together have then
// consumed. It goes on where consumed items were drawn, on whatever number of ranks; at the
// beginning consumed is 0.
func (m Mixture) From(consumed int) (iter.Seq2[int, Draw], error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if consumed < 0 {
		return nil, fmt.Errorf("data: a Mixture of which %d items are consumed", consumed)
	}
	return func(yield func(int, Draw) bool) {
		w := newWalk(m, consumed)
		for size := m.ranks(); consumed <= math.MaxInt-size; {
			consumed += size
			var mine Draw
			for r := range size {
				if source, k := w.next(); r == m.Rank {
					mine = w.draw(source, k)
				}
			}
			if !yield(consumed, mine) {
				return
			}
		}
	}, nil
}

// walk goes through the positions of a Mixture.
type walk struct {
	m      Mixture
	shares []int
	order  []uint16 // the sources of a period
	number int      // of the period
	at     int      // in it
	drawn  []int    // of each source, before at
	orders []epochOrder
}

// epochOrder is the order of a source's items in an epoch.
type epochOrder struct {
	epoch int
	p     *permutation
}

func newWalk(m Mixture, consumed int) *walk {
	w := &walk{m: m, shares: m.Shares(), order: make([]uint16, period), number: consumed / period, at: consumed % period,
		drawn: make([]int, len(m.Sources)), orders: make([]epochOrder, len(m.Sources))}
	for i, n := range w.shares {
		w.drawn[i] = w.number * n
	}
	w.shuffle()
	for _, s := range w.order[:w.at] {
		w.drawn[s]++
	}
	return w
}

// shuffle makes the order of a period: as many of each source as its share, at random places.
func (w *walk) shuffle() {
	p := newPermutation(period, Seed(w.m.Seed, 0, w.number))
	i := 0
	for source, n := range w.shares {
		for range n {
			w.order[p.at(i)] = uint16(source)
			i++
		}
	}
}

// next goes a position on: its source, and which of the draws of that source it is.
func (w *walk) next() (source, k int) {
	if w.at == period {
		w.number, w.at = w.number+1, 0
		w.shuffle()
	}
	source = int(w.order[w.at])
	k = w.drawn[source]
	w.at++
	w.drawn[source]++
	return source, k
}

// draw is the item of a source's k-th draw.
func (w *walk) draw(source, k int) Draw {
	n := w.m.Sources[source].N
	o := &w.orders[source]
	if e := k / n; o.p == nil || o.epoch != e {
		o.epoch, o.p = e, newPermutation(n, Seed(w.m.seed(source), 0, e))
	}
	return Draw{source, o.p.at(k % n), o.epoch}
}

// Sampler has the order of a source's items in each of its epochs, for one rank.
func (m Mixture) Sampler(source int) Sampler {
	return Sampler{N: m.Sources[source].N, Size: 1, Seed: m.seed(source)}
}

// seed is that of a source's Sampler.
func (m Mixture) seed(source int) uint64 { return Seed(m.Seed, 1, source) }
