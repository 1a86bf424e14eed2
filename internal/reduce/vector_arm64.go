//go:build !noasm

package reduce

import (
	"golang.org/x/sys/cpu"

	"github.com/goccl/goccl/internal/op"
)

// vector has the levels above generic that this CPU and its system support: one with all
// instructions that it has, and one with those of every arm64, which tests then have too.
func vector() []*level {
	if !cpu.ARM64.HasASIMD {
		return nil
	}
	fp16, bf16 := hasFP16(), hasBF16()
	if fp16 || bf16 {
		return []*level{neon(fp16, bf16), neon(false, false)}
	}
	return []*level{neon(false, false)}
}

// neon is the level of arm64. Its kernels take any number of elements, so there is nothing left for
// the specification to do. fp16 has arithmetic on half (FEAT_FP16: Cortex-A76, Neoverse N1, Apple
// M1), bf16 rounds to bfloat16 in one instruction (FEAT_BF16: Neoverse V1 and N2, Apple M2).
func neon(fp16, bf16 bool) *level {
	kernels := [op.Types][op.Ops]Func{
		op.Int8:     {sumInt8NEON, prodInt8NEON, minInt8NEON, maxInt8NEON},
		op.Uint8:    {sumInt8NEON, prodInt8NEON, minUint8NEON, maxUint8NEON},
		op.Int16:    {sumInt16NEON, prodInt16NEON, minInt16NEON, maxInt16NEON},
		op.Uint16:   {sumInt16NEON, prodInt16NEON, minUint16NEON, maxUint16NEON},
		op.Int32:    {sumInt32NEON, prodInt32NEON, minInt32NEON, maxInt32NEON},
		op.Uint32:   {sumInt32NEON, prodInt32NEON, minUint32NEON, maxUint32NEON},
		op.Int64:    {sumInt64NEON, prodInt64NEON, minInt64NEON, maxInt64NEON},
		op.Uint64:   {sumInt64NEON, prodInt64NEON, minUint64NEON, maxUint64NEON},
		op.Float16:  {sumFloat16NEON, prodFloat16NEON, minFloat16NEON, maxFloat16NEON},
		op.BFloat16: {sumBFloat16NEON, prodBFloat16NEON, minBFloat16NEON, maxBFloat16NEON},
		op.Float32:  {sumFloat32NEON, prodFloat32NEON, minFloat32NEON, maxFloat32NEON},
		op.Float64:  {sumFloat64NEON, prodFloat64NEON, minFloat64NEON, maxFloat64NEON},
	}
	name, isa, scaleBF16, sumAllBFloat16 := "neon", neonVectors, scaleBFloat16NEON, sumAllBFloat16NEON
	if fp16 {
		name += "+fp16"
		kernels[op.Float16] = [op.Ops]Func{sumFloat16FP16, prodFloat16FP16, minFloat16FP16, maxFloat16FP16}
	}
	if bf16 {
		name += "+bf16"
		kernels[op.BFloat16][op.Sum], kernels[op.BFloat16][op.Prod] = sumBFloat16BF16, prodBFloat16BF16
		isa, scaleBF16, sumAllBFloat16 = neonBF16Vectors, scaleBFloat16BF16, sumAllBFloat16BF16
	}
	l := assemble(name, 0, &kernels)
	l.isa = isa
	l.streamSum(0, op.Int32, streamSumInt32NEON, streamBothInt32NEON)
	l.streamSum(0, op.Int64, streamSumInt64NEON, streamBothInt64NEON)
	l.streamSum(0, op.Float32, streamSumFloat32NEON, streamBothFloat32NEON)
	l.streamSum(0, op.Float64, streamSumFloat64NEON, streamBothFloat64NEON)
	l.scale[op.Int8], l.scale[op.Uint8] = divide(0, op.Int8, scaleInt8NEON), divide(0, op.Uint8, scaleUint8NEON)
	l.scale[op.Int16], l.scale[op.Uint16] = divide(0, op.Int16, scaleInt16NEON), divide(0, op.Uint16, scaleUint16NEON)
	l.scale[op.Int32], l.scale[op.Uint32] = divide(0, op.Int32, scaleInt32NEON), divide(0, op.Uint32, scaleUint32NEON)
	l.scale[op.Float16] = divide(0, op.Float16, scaleFloat16NEON)
	l.scale[op.BFloat16] = divide(0, op.BFloat16, scaleBF16)
	l.scale[op.Float32] = divide(0, op.Float32, scaleFloat32NEON)
	l.scale[op.Float64] = divide(0, op.Float64, scaleFloat64NEON)
	l.copy = streamCopy(0, streamCopyNEON)
	l.sumAll[op.Float16] = sumPieces(0, sumAllF16, sumAllFloat16NEON)
	l.sumAll[op.BFloat16] = sumPieces(0, sumAllBF16, sumAllBFloat16)
	copy(l.encode[:], []blockEncoder{encodeInt8NEON, encodeInt4NEON})
	copy(l.decode[:], []blockDecoder{decodeInt8NEON, decodeInt4NEON})
	copy(l.addDecoded[:], []blockDecoder{addInt8NEON, addInt4NEON})
	return l
}
