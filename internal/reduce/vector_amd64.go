//go:build !noasm

package reduce

import (
	"golang.org/x/sys/cpu"

	"github.com/goccl/goccl/internal/op"
)

// vector has the levels above generic that this CPU and its system support.
func vector() []*level {
	var ls []*level
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 {
		l := avx512()
		if x.HasAVX512BF16 {
			ls = append(ls, avx512BF16())
			l.name = "avx512-nobf16" // there for the tests
		}
		ls = append(ls, l)
	}
	if x.HasAVX2 && hasF16C() {
		ls = append(ls, avx2())
	}
	return ls
}

// avx512 is the level of Skylake-SP: F, BW, DQ and VL. Its kernels mask the last
// step, so there is nothing left for the specification to do.
func avx512() *level {
	kernels := [op.Types][op.Ops]Func{
		op.Int8:     {sumInt8AVX512, prodInt8AVX512, minInt8AVX512, maxInt8AVX512},
		op.Uint8:    {sumInt8AVX512, prodInt8AVX512, minUint8AVX512, maxUint8AVX512},
		op.Int16:    {sumInt16AVX512, prodInt16AVX512, minInt16AVX512, maxInt16AVX512},
		op.Uint16:   {sumInt16AVX512, prodInt16AVX512, minUint16AVX512, maxUint16AVX512},
		op.Int32:    {sumInt32AVX512, prodInt32AVX512, minInt32AVX512, maxInt32AVX512},
		op.Uint32:   {sumInt32AVX512, prodInt32AVX512, minUint32AVX512, maxUint32AVX512},
		op.Int64:    {sumInt64AVX512, prodInt64AVX512, minInt64AVX512, maxInt64AVX512},
		op.Uint64:   {sumInt64AVX512, prodInt64AVX512, minUint64AVX512, maxUint64AVX512},
		op.Float16:  {sumFloat16AVX512, prodFloat16AVX512, minFloat16AVX512, maxFloat16AVX512},
		op.BFloat16: {sumBFloat16AVX512, prodBFloat16AVX512, minBFloat16AVX512, maxBFloat16AVX512},
		op.Float32:  {sumFloat32AVX512, prodFloat32AVX512, minFloat32AVX512, maxFloat32AVX512},
		op.Float64:  {sumFloat64AVX512, prodFloat64AVX512, minFloat64AVX512, maxFloat64AVX512},
	}
	l := assemble("avx512", 0, &kernels)
	l.isa = avx512Vectors
	l.streamSum(0, op.Int32, streamSumInt32AVX512, streamBothInt32AVX512)
	l.streamSum(0, op.Int64, streamSumInt64AVX512, streamBothInt64AVX512)
	l.streamSum(0, op.Float32, streamSumFloat32AVX512, streamBothFloat32AVX512)
	l.streamSum(0, op.Float64, streamSumFloat64AVX512, streamBothFloat64AVX512)
	l.scale[op.Float16] = divide(0, op.Float16, scaleFloat16AVX512)
	l.scale[op.BFloat16] = divide(0, op.BFloat16, scaleBFloat16AVX512)
	l.scale[op.Float32] = divide(0, op.Float32, scaleFloat32AVX512)
	l.scale[op.Float64] = divide(0, op.Float64, scaleFloat64AVX512)
	l.copy = streamCopy(0, streamCopyAVX512)
	l.sumAll[op.Float16] = sumPieces(0, sumAllF16, sumAllFloat16AVX512)
	l.sumAll[op.BFloat16] = sumPieces(0, sumAllBF16, sumAllBFloat16AVX512)
	copy(l.encode[:], []blockEncoder{encodeInt8AVX512, encodeInt4AVX512})
	copy(l.decode[:], []blockDecoder{decodeInt8AVX512, decodeInt4AVX512})
	copy(l.addDecoded[:], []blockDecoder{addInt8AVX512, addInt4AVX512})
	return l
}

// avx512BF16 is the level of Cooper Lake, Sapphire Rapids and Zen 4, which round
// to bfloat16 in one instruction.
func avx512BF16() *level {
	l := avx512()
	l.reduce[op.BFloat16][op.Sum] = pieces(0, op.BFloat16, op.Sum, sumBFloat16AVX512BF16)
	l.reduce[op.BFloat16][op.Avg] = l.reduce[op.BFloat16][op.Sum]
	l.reduce[op.BFloat16][op.Prod] = pieces(0, op.BFloat16, op.Prod, prodBFloat16AVX512BF16)
	l.stream[op.BFloat16] = l.reduce[op.BFloat16]
	return l
}

// avx2 is the level of Haswell and Zen. Its kernels take whole steps of 32 bytes
// (half: 16) and leave the rest to the specification.
func avx2() *level {
	kernels := [op.Types][op.Ops]Func{
		op.Int8:     {sumInt8AVX2, prodInt8AVX2, minInt8AVX2, maxInt8AVX2},
		op.Uint8:    {sumInt8AVX2, prodInt8AVX2, minUint8AVX2, maxUint8AVX2},
		op.Int16:    {sumInt16AVX2, prodInt16AVX2, minInt16AVX2, maxInt16AVX2},
		op.Uint16:   {sumInt16AVX2, prodInt16AVX2, minUint16AVX2, maxUint16AVX2},
		op.Int32:    {sumInt32AVX2, prodInt32AVX2, minInt32AVX2, maxInt32AVX2},
		op.Uint32:   {sumInt32AVX2, prodInt32AVX2, minUint32AVX2, maxUint32AVX2},
		op.Int64:    {sumInt64AVX2, prodInt64AVX2, minInt64AVX2, maxInt64AVX2},
		op.Uint64:   {sumInt64AVX2, prodInt64AVX2, minUint64AVX2, maxUint64AVX2},
		op.Float16:  {sumFloat16AVX2, prodFloat16AVX2, minFloat16AVX2, maxFloat16AVX2},
		op.BFloat16: {sumBFloat16AVX2, prodBFloat16AVX2, minBFloat16AVX2, maxBFloat16AVX2},
		op.Float32:  {sumFloat32AVX2, prodFloat32AVX2, minFloat32AVX2, maxFloat32AVX2},
		op.Float64:  {sumFloat64AVX2, prodFloat64AVX2, minFloat64AVX2, maxFloat64AVX2},
	}
	l := assemble("avx2", avx2Step, &kernels)
	l.isa = avx2Vectors
	l.streamSum(avx2Step, op.Int32, streamSumInt32AVX2, streamBothInt32AVX2)
	l.streamSum(avx2Step, op.Int64, streamSumInt64AVX2, streamBothInt64AVX2)
	l.streamSum(avx2Step, op.Float32, streamSumFloat32AVX2, streamBothFloat32AVX2)
	l.streamSum(avx2Step, op.Float64, streamSumFloat64AVX2, streamBothFloat64AVX2)
	l.scale[op.Float16] = divide(avx2Step, op.Float16, scaleFloat16AVX2)
	l.scale[op.BFloat16] = divide(avx2Step, op.BFloat16, scaleBFloat16AVX2)
	l.scale[op.Float32] = divide(avx2Step, op.Float32, scaleFloat32AVX2)
	l.scale[op.Float64] = divide(avx2Step, op.Float64, scaleFloat64AVX2)
	l.copy = streamCopy(avx2Step, streamCopyAVX2)
	l.sumAll[op.Float16] = sumPieces(avx2Step, sumAllF16, sumAllFloat16AVX2)
	l.sumAll[op.BFloat16] = sumPieces(avx2Step, sumAllBF16, sumAllBFloat16AVX2)
	copy(l.encode[:], []blockEncoder{encodeInt8AVX2, encodeInt4AVX2})
	copy(l.decode[:], []blockDecoder{decodeInt8AVX2, decodeInt4AVX2})
	copy(l.addDecoded[:], []blockDecoder{addInt8AVX2, addInt4AVX2})
	return l
}

// avx2Step is how many bytes AVX2's kernels leave no rest of.
const avx2Step = 32
