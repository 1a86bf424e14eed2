package amp

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/train/internal/same"
)

// Float8 is a type that Quantize rounds to: E4M3 up to 448 for weights and activations, E5M2 up to 57,344 for
// gradients, as Micikevicius et al. (2022) have it.
type Float8 interface {
	ccl.Float8E4M3 | ccl.Float8E5M2
}

// of returns the largest number of F, and its conversions.
func of[F Float8]() (most float32, to func(float32) uint8, from func(uint8) float32) {
	if ccl.TypeOf[F]() == ccl.TypeFloat8E5M2 {
		return 57344, reduce.F32ToE5M2, reduce.E5M2ToF32
	}
	return 448, reduce.F32ToE4M3, reduce.E4M3ToF32
}

// Amax is the greatest magnitude of x: 0 of none, NaN if x has a NaN or an infinity.
func Amax(x []float32) (most float32) {
	odd := float32(0)
	for _, v := range x {
		odd += v - v // 0, or no number for good
		most = max(most, v, -v)
	}
	return most + odd
}

// ScaleOf is what Quantize multiplies by numbers up to amax: the greatest power of two, from 2^-126 to 2^126, by which
// amax times 2^margin is no larger than F's largest number, so that scaling rounds nothing. It is 1 for an amax of 0
// and for one that is not finite.
func ScaleOf[F Float8](amax float32, margin int) float32 {
	most, _, _ := of[F]()
	if !(amax > 0) || math.IsInf(float64(amax), 0) {
		return 1
	}
	f, e := math.Frexp(float64(amax))
	g, k := math.Frexp(float64(most))
	if k -= e + margin; f > g {
		k--
	}
	return float32(math.Ldexp(1, min(max(k, -126), 126)))
}

// Quantize sets dst to src times scale, rounded to the nearest, the even one of two, and once if scale is a power of
// two; what is beyond the largest number becomes that. finite is false if scale is not, or if src has a NaN, which
// stays one, or an infinity. dst is as long as src: else nothing is set, and that is not finite.
func Quantize[F Float8](dst []F, src []float32, scale float32) (finite bool) {
	if len(dst) != len(src) {
		return false
	}
	_, to, _ := of[F]()
	odd := scale - scale
	for i, x := range src {
		odd += x - x
		dst[i] = F(to(x * scale))
	}
	return odd == 0
}

// Dequantize sets dst to src divided by the scale that it was multiplied by. What was rounded up to more than the
// largest float32 becomes that. dst is as long as src: else nothing is set.
func Dequantize[F Float8](dst []float32, src []F, scale float32) {
	if len(dst) != len(src) {
		return
	}
	_, _, from := of[F]()
	for i, b := range src {
		x := from(uint8(b))
		if dst[i] = x / scale; x-x == 0 { // else an infinity stays
			dst[i] = max(min(dst[i], math.MaxFloat32), -math.MaxFloat32)
		}
	}
}

// QuantizeBlocks is Quantize with a scale for each block elements of src, by ScaleOf, in scales: as DeepSeek-V3 has
// tiles of 128, and MX blocks of 32. The last block may be shorter. An error says what has which length, and nothing
// is set then; finite is as of Quantize.
func QuantizeBlocks[F Float8](dst []F, scales, src []float32, block int) (finite bool, err error) {
	if err := blocked("QuantizeBlocks", len(src), len(dst), len(scales), block); err != nil {
		return false, err
	}
	finite = true
	for i := range scales {
		lo, hi := i*block, min((i+1)*block, len(src))
		scales[i] = ScaleOf[F](Amax(src[lo:hi]), 0)
		finite = Quantize(dst[lo:hi], src[lo:hi], scales[i]) && finite
	}
	return finite, nil
}

// DequantizeBlocks is Dequantize of what QuantizeBlocks made.
func DequantizeBlocks[F Float8](dst []float32, src []F, scales []float32, block int) error {
	if err := blocked("DequantizeBlocks", len(src), len(dst), len(scales), block); err != nil {
		return err
	}
	for i, scale := range scales {
		lo, hi := i*block, min((i+1)*block, len(src))
		Dequantize(dst[lo:hi], src[lo:hi], scale)
	}
	return nil
}

// blocked says what is wrong with lengths.
func blocked(what string, src, dst, scales, block int) error {
	if block < 1 || dst != src || scales != (src+block-1)/block {
		return fmt.Errorf("amp: %s of %d numbers to %d, in blocks of %d with %d scales: a scale each", what, src, dst, block,
			scales)
	}
	return nil
}

// Scales are those of tensors in 8-bit floats, which all ranks of a Comm have alike, as tensor parallelism and sharded
// weights need it. With a Window of 0 they are current: those of the tensors as they are now, for which Note comes
// before Update, and Update before Quantize. Else they are delayed (NVIDIA's Transformer Engine): Scale goes by the
// greatest magnitudes of the last Window steps, so tensors are quantized as they are made, and Note and Update follow
// in the step. One goroutine at a time uses them.
type Scales[F Float8] struct {
	c      *ccl.Comm
	o      ScalesOptions
	amax   []float32 // of this step
	scales []float32
	past   []float32 // [Window][tensors]
	next   int
	misuse error // of a tensor that there is not
}

// ScalesOptions of NewScales, which compares them between ranks.
type ScalesOptions struct {
	// Tensors is how many there are.
	Tensors int
	// Window is of how many steps the greatest magnitude counts; 0: of this one.
	Window int
	// Margin leaves so many powers of two above the greatest magnitude: for delayed scales, behind which tensors grow.
	Margin int
}

// NewScales makes Scales of 1 for all ranks of c, which all call it.
func NewScales[F Float8](ctx context.Context, c *ccl.Comm, o ScalesOptions) (*Scales[F], error) {
	if c == nil {
		return nil, errors.New("amp: NewScales: the Comm is nil")
	}
	var bad error
	if o.Tensors < 0 || o.Window < 0 || o.Margin < 0 || o.Margin > 64 {
		bad = fmt.Errorf("%+v: none may be negative, and Margin at most 64", o)
	}
	if err := same.Args(ctx, c, "amp: NewScales", bad, fmt.Sprintf("%v %+v", ccl.TypeOf[F](), o)); err != nil {
		return nil, err
	}
	s := &Scales[F]{c: c, o: o, amax: make([]float32, o.Tensors), scales: make([]float32, o.Tensors),
		past: make([]float32, max(o.Window, 1)*o.Tensors)}
	for i := range s.scales {
		s.scales[i] = 1
	}
	return s, nil
}

// Scale is that of tensor i: NaN if there is no such tensor, which Update tells.
func (s *Scales[F]) Scale(i int) float32 {
	if !s.has("Scale", i) {
		return float32(math.NaN())
	}
	return s.scales[i]
}

// Note takes a part of tensor i as it is in this step; of several calls the greatest magnitude counts. If there is no
// such tensor, Update tells.
func (s *Scales[F]) Note(i int, x []float32) {
	if s.has("Note", i) {
		s.amax[i] = max(s.amax[i], Amax(x)) // NaN stays
	}
}

func (s *Scales[F]) has(what string, i int) bool {
	ok := i >= 0 && i < len(s.scales)
	if !ok && s.misuse == nil {
		s.misuse = fmt.Errorf("amp: %s of tensor %d; there are %d, from 0 on", what, i, len(s.scales))
	}
	return ok
}

// Update sets the scales by what all ranks have noted: an all-reduce of a number for each tensor. odd lists the tensors
// that are not finite on some rank, the same on all: their scales stay, and what was noted of them does not count. A
// call of a tensor that there is not is an error here, which fails the Comm, so that all ranks have it.
func (s *Scales[F]) Update(ctx context.Context) (odd []int, err error) {
	if s.misuse != nil {
		s.c.Abort(s.misuse)
		return nil, s.misuse
	}
	if err := ccl.AllReduce(ctx, s.c, s.amax, s.amax, ccl.Max); err != nil {
		return nil, fmt.Errorf("amp: Scales: %w", err)
	}
	n := len(s.amax)
	for i, a := range s.amax {
		if a-a != 0 {
			odd, a = append(odd, i), 0
		}
		s.past[s.next*n+i] = a
		s.amax[i] = 0
		most := float32(0)
		for at := i; at < len(s.past); at += n {
			most = max(most, s.past[at])
		}
		if most > 0 && (len(odd) == 0 || odd[len(odd)-1] != i) {
			s.scales[i] = ScaleOf[F](most, s.o.Margin)
		}
	}
	s.next = (s.next + 1) % max(s.o.Window, 1)
	return odd, nil
}

// ScalesState is what a checkpoint needs of Scales.
type ScalesState struct {
	// Scales are those of the tensors, and Past the greatest magnitudes of the last steps, of which Next is replaced next.
	Scales, Past []float32
	Next         int
}

// State is that of the Scales, in their own memory.
func (s *Scales[F]) State() ScalesState { return ScalesState{s.scales, s.past, s.next} }

// Restore continues from a State, which all ranks have loaded.
func (s *Scales[F]) Restore(st ScalesState) error {
	if len(st.Scales) != len(s.scales) || len(st.Past) != len(s.past) || st.Next < 0 || st.Next >= max(s.o.Window, 1) {
		return fmt.Errorf("amp: Restore of %d scales and %d magnitudes at %d, to %d and %d", len(st.Scales), len(st.Past),
			st.Next, len(s.scales), len(s.past))
	}
	for _, x := range st.Scales {
		if f, _ := math.Frexp(float64(x)); f != .5 || x < 0x1p-126 {
			return fmt.Errorf("amp: Restore of a scale of %v, which is none of ScaleOf", x)
		}
	}
	for _, x := range st.Past {
		if !(x >= 0 && x <= math.MaxFloat32) {
			return fmt.Errorf("amp: Restore of a magnitude of %v", x)
		}
	}
	copy(s.scales, st.Scales)
	copy(s.past, st.Past)
	s.next = st.Next
	return nil
}
