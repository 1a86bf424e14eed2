package main

import (
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// hasF16C writes a function that asks the CPU for VCVTPH2PS and VCVTPS2PH, which
// golang.org/x/sys/cpu does not know. Every CPU with AVX2 has them, but what a
// hypervisor shows of it need not be consistent.
func hasF16C(c *build.Context) {
	c.Function("hasF16C")
	c.Attributes(attr.NOSPLIT)
	result := types.NewTuple(types.NewVar(0, nil, "", types.Typ[types.Bool]))
	c.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, nil, result, false)))
	c.Doc("hasF16C reports bit 29 of CPUID leaf 1's ECX.")
	c.MOVL(operand.U32(1), reg.EAX)
	c.XORL(reg.ECX, reg.ECX)
	c.CPUID()
	c.SHRL(operand.U8(29), reg.ECX)
	c.ANDL(operand.U8(1), reg.ECX)
	c.Store(reg.CL, c.ReturnIndex(0))
	c.RET()
}
