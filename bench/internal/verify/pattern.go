// Package verify makes inputs whose collective results are known exactly, and
// compares results with them, bit for bit.
//
// Every partial result, in any order of the ranks, is a number of the element
// type, so that no algorithm may round and equality is the test: small integers
// for sums of floats, powers of two for their products, shares that cancel for
// their averages, any bits where an integer wraps or data only moves.
package verify

import (
	"math"

	"github.com/goccl/goccl/ccl"
)

// Pattern is one set of inputs: of all ranks, of any length. Change Seed for each
// checked call, so that a result left over from the last one is wrong.
type Pattern struct {
	Type   ccl.Type
	Op     ccl.Op // if Reduce
	Reduce bool
	Ranks  int
	Seed   uint64
	Factor float64 // of a Sum of floats: a power of two, by which it is multiplied; 0: 1

	tables map[int][]byte
	poison []byte
}

// Reduced means, in place of a rank, the reduced inputs of all ranks.
const Reduced = -1

// bits is element x of rank's input, or of the reduced inputs.
func (p *Pattern) bits(rank, x int) uint64 {
	if rank == Reduced {
		return p.fold(x)
	}
	return p.value(rank, x)
}

// value is element x of rank's input.
func (p *Pattern) value(rank, x int) uint64 {
	f := formatOf(p.Type)
	h := hash(p.Seed, uint64(x), uint64(rank))
	switch {
	case !p.Reduce || p.Op == ccl.Min || p.Op == ccl.Max:
		return f.finite(h)
	case f.float():
		bits, _ := f.encode(p.number(f, rank, x, h))
		return bits
	case p.Op == ccl.Sum:
		return h & f.mask()
	case p.Op == ccl.Prod:
		return (h | 1) & f.mask() // odd, or a few factors would make it 0
	}
	return uint64(p.share(f, rank, x, h)) & f.mask()
}

// finite is any integer, or any normal float but those of the larger exponents: no
// NaN, no infinity and no zero, whose bits a minimum need not keep.
func (f format) finite(h uint64) uint64 {
	h &= f.mask()
	if f.float() {
		h = h&^(1<<(f.man+f.exp-1)) | 1<<f.man
	}
	return h
}

// number is a float element of a sum, a product or an average. No partial sum may
// need more bits than the mantissa has, and no partial product leave the range of
// exponents; where there are too many ranks for all to add something, some do, and
// others do at other elements.
func (p *Pattern) number(f format, rank, x int, h uint64) float64 {
	n := p.Ranks
	// of rank among the ranks, turned at every element
	place := int((uint64(rank) + hash(p.Seed, uint64(x), 1<<40)) % uint64(n))
	if p.Op == ccl.Prod {
		e := 0
		if place < f.bias()-1 {
			e = int(h>>8%3) - 1
		}
		return math.Copysign(math.Ldexp(1, e), float64(h&1)-0.5)
	}
	exact := min(1<<(f.man+1), 1<<24) // integers up to this are exact
	if place >= exact {
		return 0
	}
	most := max(exact/n, 1) // |number| for every rank
	if p.Op == ccl.Sum {
		return float64(int(h%uint64(2*most+1)) - most)
	}
	// An average: all have the result, plus what a neighbour has less.
	half := exact / n / 2
	mean := int(hash(p.Seed, uint64(x), 1<<41)%uint64(2*half+1)) - half
	delta := 1 + int(hash(p.Seed, uint64(x), 1<<42+uint64(place/2))%uint64(most-half))
	switch {
	case place%2 == 1:
		delta = -delta
	case place == n-1:
		delta = 0 // the last of an odd number has no neighbour
	}
	return float64(mean + delta)
}

// share is an integer element of an average: the sum does not overflow, since what
// is to come of that is the library's choice.
func (p *Pattern) share(f format, rank, x int, h uint64) int64 {
	top := f.mask()
	if f.signed {
		top >>= 1
	}
	most := min(top/uint64(p.Ranks), 1<<53)
	if most == 0 {
		place := (uint64(rank) + hash(p.Seed, uint64(x), 1<<40)) % uint64(p.Ranks)
		if place < top {
			return int64(h & 1)
		}
		return 0
	}
	if f.signed {
		return int64(h%(2*most+1)) - int64(most)
	}
	return int64(h % (most + 1))
}

// fold reduces element x of all ranks, in float64 or in 64-bit integers.
func (p *Pattern) fold(x int) uint64 {
	f := formatOf(p.Type)
	if !f.float() {
		return p.foldInteger(f, x)
	}
	acc := f.decode(p.value(0, x))
	for r := 1; r < p.Ranks; r++ {
		v := f.decode(p.value(r, x))
		switch p.Op {
		case ccl.Prod:
			acc *= v
		case ccl.Min:
			acc = min(acc, v)
		case ccl.Max:
			acc = max(acc, v)
		default:
			acc += v
		}
	}
	if p.Op == ccl.Avg {
		acc /= float64(p.Ranks)
	}
	if p.Factor != 0 {
		acc *= p.Factor
	}
	bits, _ := f.encode(acc)
	return bits
}

func (p *Pattern) foldInteger(f format, x int) uint64 {
	acc := p.value(0, x)
	for r := 1; r < p.Ranks; r++ {
		v := p.value(r, x)
		less := v < acc
		if f.signed {
			less = f.integer(v) < f.integer(acc)
		}
		switch {
		case p.Op == ccl.Prod:
			acc *= v
		case p.Op == ccl.Sum || p.Op == ccl.Avg:
			acc += v
		case less == (p.Op == ccl.Min):
			acc = v
		}
	}
	acc &= f.mask()
	if p.Op == ccl.Avg {
		if f.signed {
			return uint64(f.integer(acc)/int64(p.Ranks)) & f.mask() // towards zero
		}
		return acc / uint64(p.Ranks)
	}
	return acc
}

// hash mixes three numbers: SplitMix64's finalizer (Steele, Lea and Flood, 2014)
// over each in turn.
func hash(a, b, c uint64) uint64 {
	return mix(mix(mix(a)+b) + c)
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
