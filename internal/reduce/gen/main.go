// Command gen makes the vector kernels of package reduce: reduce_amd64.s and reduce_arm64.s, and
// files with the declarations of the kernels for each set of instructions. Run it by go generate in
// that package; its output depends on nothing but this source.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
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

// generate makes the files, by their names.
func generate() (files map[string][]byte, err error) {
	c := build.NewContext()
	c.ConstraintExpr("!noasm")
	for _, g := range []*gen{
		{Context: c, name: "AVX2", vector: 32, table: packedTable(c)},
		{Context: c, name: "AVX512", vector: 64, evex: true, table: interleaveTable(c)},
	} {
		for _, k := range kernels(g) {
			g.emit(k)
		}
		for _, k := range sumAlls(g) {
			g.emitSumAll(k)
		}
		for _, k := range blockCodes {
			g.emitEncode(k)
			g.emitDecode(k, false)
			g.emitDecode(k, true)
		}
	}
	hasF16C(c)
	f, err := c.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, err
	}
	cfg := printer.Config{Name: "internal/reduce/gen", Pkg: "reduce"}
	asm, err := printer.NewGoAsm(cfg).Print(f)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{"reduce_amd64.s": asm}
	for name, holds := range map[string]func(function string) bool{
		"reduce_avx2_amd64.go":   func(function string) bool { return !strings.HasSuffix(function, "AVX512") },
		"reduce_avx512_amd64.go": func(function string) bool { return strings.HasSuffix(function, "AVX512") },
	} {
		part := ir.NewFile()
		part.Constraints = f.Constraints
		for _, fn := range f.Functions() {
			if holds(fn.Name) {
				part.AddSection(fn)
			}
		}
		stubs, err := printer.NewStubs(cfg).Print(part)
		if err != nil {
			return nil, err
		}
		// avo knows the type unsafe.Pointer but not that it needs an import.
		files[name] = bytes.Replace(stubs, []byte("package reduce\n"), []byte("package reduce\n\nimport \"unsafe\"\n"), 1)
	}
	arm64, _ := generateNEON()
	maps.Copy(files, arm64)
	return files, nil
}
