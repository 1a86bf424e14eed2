// Command gen makes the vector kernels of package mat: mat_amd64.s, the declarations in
// mat_amd64.go, and in choose_*.go what chooses among them. Run it by go generate in that package;
// its output depends on nothing but this source.
package main

import (
	"errors"
	"fmt"
	"go/types"
	"os"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	files, err := generate()
	for name, text := range files {
		err = errors.Join(err, os.WriteFile("../"+name, text, 0o666))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate makes the files by name: the assembly, its declarations, and what chooses a kernel.
func generate() (files map[string][]byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!noasm")
	tables := map[uint32]operand.Mem{}
	var last *gen
	for _, g := range []*gen{
		{Context: c, name: "AVX2", vector: 32, tables: tables},
		{Context: c, name: "AVX512", vector: 64, evex: true, tables: tables},
	} {
		rows, few := 6, 2
		if g.evex {
			rows, few = 12, 4
		}
		g.mul("mul", rows)
		g.mul("mulFew", few)
		g.pack(rows)
		g.peak()
		g.maps()
		g.folds()
		last = g
	}
	f, err := c.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, err
	}
	cfg := printer.Config{Name: "examples/internal/mat/gen", Pkg: "mat"}
	asm, err := printer.NewGoAsm(cfg).Print(f)
	if err != nil {
		return nil, err
	}
	stubs, err := printer.NewStubs(cfg).Print(f)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{"mat_amd64.s": asm, "mat_amd64.go": stubs}
	for name, isAMD64 := range map[string]bool{"choose_amd64.go": true, "choose_other.go": false} {
		if files[name], err = choose(last.made, isAMD64); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// gen writes kernels for one instruction set.
type gen struct {
	*build.Context
	name   string
	vector int // bytes of a register
	evex   bool
	tables map[uint32]operand.Mem // constants, each 16 times
	made   []kernel
}

// lanes is how many elements a register holds.
func (g *gen) lanes() int { return g.vector / 4 }

// vec is a new register.
func (g *gen) vec() reg.VecVirtual {
	if g.evex {
		return g.ZMM()
	}
	return g.YMM()
}

// function begins one. Pointers are to float32; result adds a float32.
func (g *gen) function(name string, ints, pointers, floats []string, result bool, doc string) {
	g.made = append(g.made, kernel{name, ints, pointers, floats, result})
	var ps []*types.Var
	add := func(names []string, t types.Type) {
		for _, n := range names {
			ps = append(ps, types.NewParam(0, nil, n, t))
		}
	}
	add(ints, types.Typ[types.Int])
	add(pointers, types.NewPointer(types.Typ[types.Float32]))
	add(floats, types.Typ[types.Float32])
	var rs *types.Tuple
	if result {
		rs = types.NewTuple(types.NewParam(0, nil, "", types.Typ[types.Float32]))
	}
	g.Function(name + g.name)
	g.Attributes(attr.NOSPLIT)
	g.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, types.NewTuple(ps...), rs, false)))
	g.Pragma("noescape")
	g.Doc(name + g.name + " computes " + doc)
}

// arg is a register with an argument.
func (g *gen) arg(name string) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(g.addr(name), r)
	return r
}

// scalar is a vector of an argument.
func (g *gen) scalar(name string) reg.VecVirtual {
	v := g.vec()
	g.VBROADCASTSS(g.addr(name), v)
	return v
}

func (g *gen) addr(name string) operand.Mem {
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err) // the parameters and the names here are this program's
	}
	return p.Addr
}

// bits is a constant of 32 bits in all lanes, in memory.
func (g *gen) bits(x uint32) operand.Mem {
	if m, ok := g.tables[x]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("x%08x", x))
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 16 {
		g.AppendDatum(operand.U32(x))
	}
	g.tables[x] = m
	return m
}

// end ends a function.
func (g *gen) end() {
	g.VZEROUPPER()
	g.RET()
}

// and, xor are bitwise.
func (g *gen) and(a, b, dst operand.Op) {
	if g.evex {
		g.VPANDD(a, b, dst)
	} else {
		g.VPAND(a, b, dst)
	}
}

func (g *gen) xor(a, b, dst operand.Op) {
	if g.evex {
		g.VPXORD(a, b, dst)
	} else {
		g.VPXOR(a, b, dst)
	}
}

// imm is an immediate operand of the size that instructions on pointers take.
func imm(x int) operand.Op { return operand.I32(x) }
