// Package data gives each rank its own data, and the data of one rank to all. It is PyTorch's DistributedSampler and the
// reading on rank 0, or on one rank of a host, that programs write by hand.
//
// Each replica of a data-parallel job trains on other samples than its peers, and all ranks of one replica (those of
// tensor and pipeline parallelism) on the same ones. So rank and size here are those of the dp dimension:
//
//	s := data.Sampler{N: len(samples), Rank: m.Coord("dp"), Size: m.Size("dp"), Seed: 1}
//	for at, i := range s.Epoch(epoch, from) {
//		train(samples[i]) // a checkpoint needs epoch and at+1, nothing else
//	}
//
// A Sampler holds no list: an item costs about 50 ns and a position is found at once. OnRoot makes a fixed number of
// calls, and moves the data once, whatever the number of ranks. With Readers one rank in k reads, and sends k-1 parts.
package data

import (
	"fmt"
	"iter"
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
// Size-th item of it. In an epoch no item comes twice, and none is left out except the last N mod Size.
//
// The permutation is a cipher on the item numbers, not a list, so an epoch can begin at any position.
type Sampler struct {
	// N is the number of items.
	N int
	// Rank and Size say which replica this is, and of how many: the coordinate in the dp dimension, and its size.
	Rank, Size int
	// Seed chooses the permutations. It is the same on all ranks.
	Seed uint64
	// Pad repeats the first items of the permutation, so that all N items come, instead of dropping the last ones.
	Pad bool
}

// Check says what is wrong with s. A Sampler with wrong fields yields nothing.
func (s Sampler) Check() error {
	switch {
	case s.N < 0:
		return fmt.Errorf("data: a Sampler of %d items", s.N)
	case s.Size < 1:
		return fmt.Errorf("data: a Sampler for %d ranks", s.Size)
	case s.Rank < 0 || s.Rank >= s.Size:
		return fmt.Errorf("data: a Sampler for rank %d of %d", s.Rank, s.Size)
	case s.Len() == 0:
		return fmt.Errorf("data: %d items do not give each of %d ranks one; set Pad, or use fewer ranks", s.N, s.Size)
	}
	return nil
}

// Len is the number of items for each rank and epoch, the same on all ranks.
func (s Sampler) Len() int {
	switch {
	case s.N <= 0 || s.Rank < 0 || s.Rank >= s.Size:
		return 0
	case s.Pad:
		return (s.N-1)/s.Size + 1
	}
	return s.N / s.Size
}

// Epoch yields the positions of epoch e in order, beginning with from, and the item at each. To resume, pass the position
// that the run had come to.
func (s Sampler) Epoch(e, from int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		n := s.Len()
		if n == 0 {
			return
		}
		p := newPermutation(s.N, Seed(s.Seed, 0, e))
		for i := max(from, 0); i < n; i++ {
			if !yield(i, p.at((i*s.Size+s.Rank)%s.N)) {
				return
			}
		}
	}
}

// rounds of the Feistel network. Luby and Rackoff (1988) need four to pass for random; the halves here are short.
const rounds = 6

// permutation is a cipher on the numbers below n: a Feistel network on the least even number of bits that holds them,
// repeated until the result is below n (cycle walking, Black and Rogaway 2002). It takes less than four times on average.
type permutation struct {
	n    uint64
	half uint // bits of a half
	keys [rounds]uint64
}

func newPermutation(n int, seed uint64) *permutation {
	p := &permutation{n: uint64(n), half: 1}
	for p.half < 31 && uint64(1)<<(2*p.half) < p.n || p.half == 31 && p.n > 1<<62 {
		p.half++
	}
	for i := range p.keys {
		p.keys[i] = mix(seed + uint64(i)*golden)
	}
	return p
}

func (p *permutation) at(i int) int {
	x, mask := uint64(i), uint64(1)<<p.half-1
	for {
		l, r := x>>p.half, x&mask
		for _, k := range p.keys {
			l, r = r, l^mix(r+k)&mask
		}
		if x = l<<p.half | r; x < p.n {
			return int(x)
		}
	}
}
