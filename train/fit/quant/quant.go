// Package quant holds matrices in 8 or 4 bits: what QLoRA (Dettmers et al. 2023) keeps a frozen base in.
// They are encoded here, and decoded by programs where they are used.
package quant

import (
	"fmt"
	"math"
	"sort"

	"github.com/goccl/goccl/xla/hlo"
)

// Storage is how frozen parameters are held.
type Storage string

// Float32 is the default. Int8 and NF4 hold the matrices of units between the first and the last, and
// all else in the model's type of products. All are sharded at stage 3, as what is trained is.
const (
	Float32 Storage = "f32"
	BF16    Storage = "bf16"
	Int8    Storage = "int8"
	NF4     Storage = "nf4"
)

// Storages are all of them.
var Storages = []Storage{Float32, BF16, Int8, NF4}

// Block is how many elements of NF4 share a scale, as in bitsandbytes.
const Block = 64

// NF4Levels are the values of NF4's codes: quantiles of a normal distribution, scaled to [-1, 1], as
// appendix E of QLoRA's paper and bitsandbytes have them.
var NF4Levels = [16]float32{-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
	-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
	0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1}

// ToNF4 encodes x in blocks of Block elements, the last one shorter where x does not divide: two codes to a byte, the
// first in its high half, and the largest magnitude of each block.
func ToNF4(x []float32) (codes []uint8, scales []float32) {
	codes, scales = make([]uint8, (len(x)+1)/2), make([]float32, (len(x)+Block-1)/Block)
	for b := range scales {
		block := x[b*Block : min((b+1)*Block, len(x))]
		scales[b] = largest(block)
		by := float32(0)
		if scales[b] > 0 {
			by = 1 / scales[b]
		}
		for i, v := range block {
			at := b*Block + i
			codes[at/2] |= nearest(v*by) << (4 * (1 - at%2))
		}
	}
	if len(x)%2 == 1 {
		codes[len(x)/2] |= nearest(0)
	}
	return codes, scales
}

// nearest is the code of the level that is nearest to v, which is the upper one beyond the middle, as in bitsandbytes.
func nearest(v float32) uint8 {
	i := sort.Search(15, func(i int) bool { return v <= (NF4Levels[i]+NF4Levels[i+1])/2 })
	return uint8(i)
}

func largest(x []float32) (most float32) {
	for _, v := range x {
		if a := float32(math.Abs(float64(v))); a > most || a != a {
			most = a
		}
	}
	return most
}

// FromNF4 is what ToNF4 has made of n elements, decoded by a program, in the type t.
func FromNF4(codes, scales *hlo.Value, n int, t hlo.Type) *hlo.Value {
	f := codes.Func()
	high := codes.As(hlo.I32).Div(f.Const(hlo.I32, 16))
	low := codes.As(hlo.I32).Sub(high.MulC(16))
	c := hlo.Cat(1, high.Reshape(high.Len(), 1), low.Reshape(low.Len(), 1)).Reshape(2 * high.Len())
	// Comparisons, which a compiler fuses with what comes after; a table would be gathered from memory.
	x := f.Const(hlo.F32, float64(NF4Levels[15])).To(c.Len())
	for i := 14; i >= 0; i-- {
		x = hlo.If(c.Cmp("EQ", f.Const(hlo.I32, float64(i)).To(c.Len())), f.Const(hlo.F32,
			float64(NF4Levels[i])).To(c.Len()), x)
	}
	blocks := scales.Len()
	if short := blocks*Block - x.Len(); short > 0 {
		x = x.Pad(0, 0, short)
	} else if short < 0 {
		x = x.Cut(0, 0, blocks*Block)
	}
	return x.Reshape(blocks, Block).Mul(scales.Reshape(blocks, 1)).Reshape(blocks*Block).Cut(0, 0, n).As(t)
}

// ToInt8 encodes the rows of a matrix, each with a scale of its own: whole numbers from -127 to
// 127, and for each row the value of 1.
func ToInt8(x []float32, rows int) (codes []int8, scales []float32, err error) {
	if rows < 1 || len(x)%rows != 0 {
		return nil, nil, fmt.Errorf("quant: %d elements in %d rows", len(x), rows)
	}
	codes, scales = make([]int8, len(x)), make([]float32, rows)
	n := len(x) / rows
	for r := range rows {
		row := x[r*n : (r+1)*n]
		if scales[r] = largest(row) / 127; scales[r] == 0 {
			continue
		}
		for i, v := range row {
			codes[r*n+i] = int8(math.RoundToEven(float64(v / scales[r])))
		}
	}
	return codes, scales, nil
}

// FromInt8 is what ToInt8 has made of a matrix, decoded by a program, as a vector in the type t.
func FromInt8(codes, scales *hlo.Value, t hlo.Type) *hlo.Value {
	rows := scales.Len()
	return codes.Reshape(rows, codes.Len()/rows).As(hlo.F32).Mul(scales.Reshape(rows, 1)).Reshape(codes.Len()).As(t)
}
