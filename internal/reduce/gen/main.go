// Command gen makes the vector kernels of package reduce: reduce_amd64.s and the
// declarations in reduce_amd64.go. Run it by go generate in that package; its
// output depends on nothing but this source.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	asm, stubs, err := generate()
	if err == nil {
		err = os.WriteFile("../reduce_amd64.s", asm, 0o666)
	}
	if err == nil {
		err = os.WriteFile("../reduce_amd64.go", stubs, 0o666)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate makes the assembly and its declarations.
func generate() (asm, stubs []byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!noasm")
	for _, g := range []*gen{
		{Context: c, name: "AVX2", vector: 32},
		{Context: c, name: "AVX512", vector: 64, evex: true, table: interleaveTable(c)},
	} {
		for _, k := range kernels(g) {
			g.emit(k)
		}
		for _, k := range sumAlls(g) {
			g.emitSumAll(k)
		}
	}
	hasF16C(c)
	f, err := c.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, nil, err
	}
	cfg := printer.Config{Name: "internal/reduce/gen", Pkg: "reduce"}
	if asm, err = printer.NewGoAsm(cfg).Print(f); err != nil {
		return nil, nil, err
	}
	if stubs, err = printer.NewStubs(cfg).Print(f); err != nil {
		return nil, nil, err
	}
	// avo knows the type unsafe.Pointer but not that it needs an import.
	stubs = bytes.Replace(stubs, []byte("package reduce\n"), []byte("package reduce\n\nimport \"unsafe\"\n"), 1)
	return asm, stubs, nil
}
