// Package data gives each rank its own data, and the data of one rank to all. It is PyTorch's
// DistributedSampler, mixtures of sources, and the reading on rank 0, or on one rank of a host,
// that programs write by hand.
//
// Each replica of a data-parallel job trains on other samples than its peers, and all ranks of one replica (those of
// tensor and pipeline parallelism) on the same ones. So rank and size here are those of the dp dimension:
//
//	s := data.Sampler{N: len(samples), Rank: m.Coord("dp"), Size: m.Size("dp"), Seed: 1}
//	items, err := s.Epoch(epoch, consumed)
//	for consumed, i := range items {
//		train(samples[i]) // a checkpoint needs epoch and consumed, whatever the number of ranks that load it
//	}
//
// Package loader loads the items ahead, and package pack puts short documents into rows. Package text
// makes such rows of text.
//
// A Sampler holds no list of more than 256 items: an item costs about 50 ns and a position is found
// at once. OnRoot makes a fixed number of calls, and moves the data once, whatever the number of
// ranks. With Readers one rank in k reads, and sends k-1 parts.
package data

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/bits"
)

// Range is the contiguous part [lo, hi) of n items that a rank owns. The parts of all ranks cover the items in order,
// and their lengths differ by at most one. It is empty if there is no such rank.
func Range(n, rank, size int) (lo, hi int) {
	if n < 0 || rank < 0 || rank >= size {
		return 0, 0
	}
	each, more := n/size, n%size
	return rank*each + min(rank, more), (rank+1)*each + min(rank+1, more)
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014), a bijection of 64 bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Seed derives the seed of a random generator from a base seed that the job shares, a rank and a use, such as 0 for
// weights and 1 for dropout. Seeds of one base differ wherever rank or use do, for both from 0 to 2^32-1.
func Seed(base uint64, rank, use int) uint64 {
	return mix(mix(base+golden) + uint64(rank)<<32 + uint64(uint32(use)))
}

// golden is the increment of SplitMix64: 2^64 divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// Sampler draws a random permutation of N items for each epoch, the same on every rank, and gives each rank every
// Size-th item of it. In an epoch no item comes twice, and none is left out except the last ones, fewer than Size.
//
// The permutation is a cipher on the item numbers, not a list, so an epoch can begin at any position.
type Sampler struct {
	// N is the number of items.
	N int
	// Rank and Size say which replica this is, and of how many: the coordinate in the dp dimension,
	// and its size. A Size of 0 is 1.
	Rank, Size int
	// Seed chooses the permutations. It is the same on all ranks.
	Seed uint64
	// Pad repeats the first items of the permutation, so that all N items come, instead of dropping the last ones.
	Pad bool
}

// ranks is Size, or what stands for 0.
func (s Sampler) ranks() int { return cmp.Or(s.Size, 1) }

// Check says what is wrong with s.
func (s Sampler) Check() error {
	switch {
	case s.N < 0:
		return fmt.Errorf("data: a Sampler of %d items", s.N)
	case s.Size < 0:
		return fmt.Errorf("data: a Sampler for %d ranks", s.Size)
	case s.Rank < 0 || s.Rank >= s.ranks():
		return fmt.Errorf("data: a Sampler for rank %d of %d", s.Rank, s.ranks())
	case s.Len() == 0:
		return fmt.Errorf("data: %d items do not give each of %d ranks one; set Pad, or use fewer ranks", s.N, s.ranks())
	}
	return nil
}

// Len is the number of items for each rank in a whole epoch, the same on all ranks.
func (s Sampler) Len() int {
	if s.Size < 0 || s.Rank < 0 || s.Rank >= s.ranks() {
		return 0
	}
	return s.turns(0)
}

// turns is how often each rank gets an item, once consumed items were given out.
func (s Sampler) turns(consumed int) int {
	switch left := s.N - consumed; {
	case left <= 0:
		return 0
	case s.Pad:
		return (left-1)/s.ranks() + 1
	default:
		return left / s.ranks()
	}
}

// Epoch yields the items of this rank in epoch e, each with the number of items that all ranks
// together have then consumed. It goes on where consumed items were given out, on whatever number
// of ranks: each of the others comes once. At the beginning of an epoch consumed is 0. Where fewer
// items are left than there are ranks, and s does not Pad, nothing comes.
func (s Sampler) Epoch(e, consumed int) (iter.Seq2[int, int], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if consumed < 0 {
		return nil, fmt.Errorf("data: an epoch of which %d items are consumed", consumed)
	}
	return func(yield func(int, int) bool) {
		p := newPermutation(s.N, Seed(s.Seed, 0, e))
		size := s.ranks()
		at := consumed
		for range s.turns(consumed) {
			item := at + s.Rank
			if at += size; !yield(at, p.at(item%s.N)) {
				return
			}
		}
	}, nil
}

// rounds of the Feistel network. Luby and Rackoff (1988) need four to pass for random; the halves here are short.
const rounds = 6

// listed is up to how many items a permutation is a list, drawn by Fisher and Yates: of few the
// cipher does not reach all permutations equally often.
const listed = 256

// permutation is of the numbers below n. It is a cipher: a Feistel network on pairs of a number
// below a and one below b, which are added to instead of combined bit by bit, and repeated until
// the result is below n (the generalized Feistel cipher and cycle walking of Black and Rogaway
// 2002). a*b is less than n+a, so it is seldom repeated.
type permutation struct {
	n, a, b uint64
	keys    [rounds]uint64
	list    []uint8 // in place of all that, where there are few
}

func newPermutation(n int, seed uint64) *permutation {
	p := &permutation{n: uint64(n)}
	if n <= listed {
		p.shuffle(seed)
		return p
	}
	p.a = uint64(math.Sqrt(float64(n)))
	for p.a*p.a < p.n {
		p.a++
	}
	p.b = (p.n-1)/p.a + 1
	for i := range p.keys {
		p.keys[i] = mix(seed + uint64(i)*golden)
	}
	return p
}

// shuffle draws the list.
func (p *permutation) shuffle(seed uint64) {
	p.list = make([]uint8, p.n)
	for i := range p.list {
		p.list[i] = uint8(i)
	}
	for i := p.n - 1; i > 0; i-- {
		bound := i + 1
		for { // below is as likely as any other number, but for the lowest, which are drawn anew (Lemire 2019)
			seed += golden
			below, low := bits.Mul64(mix(seed), bound)
			if low >= -bound%bound {
				p.list[i], p.list[below] = p.list[below], p.list[i]
				break
			}
		}
	}
}

func (p *permutation) at(i int) int {
	if p.list != nil {
		return int(p.list[i])
	}
	x := p.once(uint64(i))
	for x >= p.n {
		x = p.once(x)
	}
	return int(x)
}

// once is one run of the cipher.
func (p *permutation) once(x uint64) uint64 {
	l, r := x/p.b, x%p.b
	for k := 0; k < rounds; k += 2 {
		l = turned(l, mix(r+p.keys[k]), p.a)
		r = turned(r, mix(l+p.keys[k+1]), p.b)
	}
	return l*p.b + r
}

// turned is x plus a number below n that h chooses, modulo n.
func turned(x, h, n uint64) uint64 {
	by, _ := bits.Mul64(h, n)
	if x += by; x >= n {
		x -= n
	}
	return x
}
