package optim

import (
	"fmt"
	"math"
)

// Moments8 is the state of AdamW in 8 bits an element instead of 32 (Dettmers et al. 2022): in
// blocks of 256, each with the largest value of the block in float32, as the nearest of 255 parts
// of it. The parts are close to each other near the largest value and far apart near 0. A second
// moment that is not 0 stays so, and the largest of a block is exact.
//
// Blocks begin where the slice does. So another cut into shards rounds otherwise, and the bits differ, which those of
// Apply do not. A checkpoint has the moments as float32, by Store, and goes into any layout; in the same one Load finds
// the same codes.
type Moments8 struct {
	m, v         []uint8   // codes
	mMost, vMost []float32 // of each block: the largest magnitude
}

// block8 is the elements of a block.
const block8 = 256

// NewMoments8 makes the state of n parameters, all 0.
func NewMoments8(n int) *Moments8 {
	n = max(n, 0)
	blocks := (n + block8 - 1) / block8
	s := &Moments8{make([]uint8, n), make([]uint8, n), make([]float32, blocks), make([]float32, blocks)}
	for i := range s.m {
		s.m[i] = zero8
	}
	return s
}

// Len is the number of parameters.
func (s *Moments8) Len() int { return len(s.m) }

// Bytes is the memory of s.
func (s *Moments8) Bytes() int { return 2*len(s.m) + 8*len(s.mMost) }

// Apply8 is Apply with the moments in s, which has the length of p.
func Apply8[T Float](h AdamW, step int, p, g []T, s *Moments8) error {
	n := len(p)
	if s == nil || len(g) != n || s.Len() != n {
		have := 0
		if s != nil {
			have = s.Len()
		}
		return fmt.Errorf("optim: %d parameters, but %d gradients, and 8-bit state of %d", n, len(g), have)
	}
	if err := Apply(h, step, p[:0], g[:0], p[:0], p[:0]); err != nil { // what is wrong with h
		return err
	}
	var m, v [block8]T
	for b, lo := 0, 0; lo < n; b, lo = b+1, lo+block8 {
		hi := min(lo+block8, n)
		for i, c := range s.m[lo:hi] {
			m[i], v[i] = T(s.mMost[b]*signed8[c]), T(s.vMost[b]*unsigned8[s.v[lo+i]])
		}
		k := hi - lo
		if err := Apply(h, step, p[lo:hi], g[lo:hi], m[:k], v[:k]); err != nil {
			return err
		}
		s.mMost[b], s.vMost[b] = encode8(s.m[lo:hi], s.v[lo:hi], m[:k], v[:k])
	}
	return nil
}

// Load sets s to moments of float32.
func (s *Moments8) Load(m, v []float32) error {
	if len(m) != s.Len() || len(v) != s.Len() {
		return fmt.Errorf("optim: 8-bit state of %d, but moments of %d and %d", s.Len(), len(m), len(v))
	}
	for b, lo := 0, 0; lo < len(m); b, lo = b+1, lo+block8 {
		hi := min(lo+block8, len(m))
		s.mMost[b], s.vMost[b] = encode8(s.m[lo:hi], s.v[lo:hi], m[lo:hi], v[lo:hi])
	}
	return nil
}

// Store sets m and v to the moments, as a checkpoint has them.
func (s *Moments8) Store(m, v []float32) error {
	if len(m) != s.Len() || len(v) != s.Len() {
		return fmt.Errorf("optim: 8-bit state of %d, but moments of %d and %d", s.Len(), len(m), len(v))
	}
	for i := range m {
		m[i], v[i] = s.mMost[i/block8]*signed8[s.m[i]], s.vMost[i/block8]*unsigned8[s.v[i]]
	}
	return nil
}

// encode8 sets the codes of a block, and returns what they are parts of. A moment that is not
// finite, which finite gradients do not make, makes its whole block so: the parameters show it in
// the next step.
func encode8[T Float](mc, vc []uint8, m, v []T) (mMost, vMost float32) {
	for i := range m {
		mMost, vMost = max(mMost, float32(math.Abs(float64(m[i])))), max(vMost, float32(v[i]))
	}
	if math.IsInf(float64(vMost), 0) { // else the steps of all of its elements would be 0 from now on
		vMost = float32(math.NaN())
	}
	for i := range m {
		mc[i] = zero8
		if x := float32(m[i]) / mMost; x < 0 {
			mc[i] = zero8 - nearest8(signed8[zero8:], -x)
		} else if x > 0 {
			mc[i] = zero8 + nearest8(signed8[zero8:], x)
		}
		vc[i] = 0
		if x := float32(v[i]) / vMost; v[i] > 0 { // at least the least part: a 0 would make a step of m/Eps
			vc[i] = max(nearest8(unsigned8[:], x), 1)
		}
	}
	return mMost, vMost
}

// zero8 is the code of 0 among those that have a sign.
const zero8 = 127

var signed8, unsigned8 = parts8()

// parts8 are the values of codes. Seven decades end at 1; the k-th has 2^k parts, or twice as many
// without a sign, evenly spaced. This is the dynamic tree of the paper with the ends of its
// intervals in place of their middles, which makes 1 a part.
func parts8() (signed, unsigned [255]float32) {
	decade := 1e-6
	at, plain := zero8, 0
	for k := range 7 {
		for _, x := range decade8(decade, 1<<k) {
			at++
			signed[at], signed[2*zero8-at] = x, -x
		}
		for _, x := range decade8(decade, 2<<k) {
			plain++
			unsigned[plain] = x
		}
		decade = math.Round(decade*1e7) / 1e6
	}
	return signed, unsigned
}

// decade8 are n parts up to end.
func decade8(end float64, n int) (list []float32) {
	for k := 1; k <= n; k++ {
		list = append(list, float32(end*float64(.1+float64(.9*float64(k)/float64(n)))))
	}
	return list
}

// nearest8 is the index of the part that is nearest to x, the lower one of two.
func nearest8(parts []float32, x float32) uint8 {
	i, end := 0, len(parts) // all before i are less than x, and all from end on are not
	for i < end {
		if k := (i + end) / 2; parts[k] < x {
			i = k + 1
		} else {
			end = k
		}
	}
	if i == len(parts) || i > 0 && x-parts[i-1] <= parts[i]-x {
		i--
	}
	return uint8(i)
}
