package main

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

// kernel measures the best kernel of a type, alone on one core, as a peer: by the benchmark of
// internal/reduce, which no other package can call.
func kernel(args []string) error {
	fs := flag.NewFlagSet("kernel", flag.ContinueOnError)
	binary := fs.String("binary", "", "the compiled tests of internal/reduce")
	typ := fs.String("type", "float", "as ccl spells it")
	fs.String("op", "kernel", "")
	size := fs.Int("max", 0, "bytes of a vector: those of the benchmark")
	fs.Int("min", 0, "")
	fs.Int("factor", 0, "")
	repeats := fs.Int("repeats", 1, "of which the median counts")
	target := fs.Float64("target_ms", 10, "time of a loop")
	fs.Int("inplace", 0, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	measure.Bind(0, 1)
	out, err := exec.Command(*binary, "-test.run", "-", "-test.bench", "^BenchmarkReduce$/^[^/]*$/^"+*typ+"$/^sum$",
		"-test.count", strconv.Itoa(*repeats),
		"-test.benchtime", time.Duration(*target*1e6).String()).Output()
	if err != nil {
		return err
	}
	best := 0.0 // of the levels, which come best first
	for _, m := range benchmarkLine.FindAllSubmatch(out, -1) {
		ns, _ := strconv.ParseFloat(string(m[1]), 64)
		if best == 0 || ns < best {
			best = ns
		}
	}
	if best == 0 {
		return errors.New("the benchmark of internal/reduce has printed no time")
	}
	fmt.Printf("goccl,kernel,1,%d,%.4f,%.4f,0,0,0,0,0,\n", *size, best/1e3, float64(*size)/best)
	return nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkReduce/\S+\s+\d+\s+([0-9.]+) ns/op`)

// kernelBytes is what that benchmark works on: three such vectors stay in a second-level cache of 1 MiB.
const kernelBytes = 128 * kib

func kernelOf(typ string) peer {
	return peer{name: "goccl", needs: []string{"kernels"}, command: func(b *builder, _ int) []string {
		return []string{b.self, "kernel", "-binary", filepath.Join(b.dir, "kernels"), "-type", typ}
	}}
}

var limits = peer{name: "limits.c", needs: []string{"limits"}, command: func(b *builder, _ int) []string {
	return []string{filepath.Join(b.dir, "limits")}
}}
