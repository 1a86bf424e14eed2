// Command insns runs one kernel of package reduce some times: what `make insns` counts the
// instructions of, in an emulator.
//
//	insns LEVEL KERNEL TYPE COUNT    COUNT times 16 KiB, which KERNEL is sum, prod, min, max, scale, stream, both, all or mean of
package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// size is the bytes of a vector, which one call of a kernel takes.
const size = 16 << 10

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "insns:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("arguments: LEVEL KERNEL TYPE COUNT; the levels here are %v", reduce.Levels())
	}
	typ, ok := typeNamed(args[2])
	if !ok {
		return fmt.Errorf("%q is no type", args[2])
	}
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	if _, err := reduce.Force(args[0]); err != nil {
		return err
	}
	f := kernel(args[1], typ)
	if f == nil {
		return fmt.Errorf("no %q of %v", args[1], typ)
	}
	for range count {
		f()
	}
	return nil
}

func typeNamed(name string) (op.Type, bool) {
	for t := range op.Types {
		if t.Go() == name && t.Valid() {
			return t, true
		}
	}
	return op.None, false
}

// kernel is one call of that name on vectors of zeros; nil if there is none.
func kernel(name string, t op.Type) func() {
	n := size / t.Size()
	var v [5]unsafe.Pointer
	for i := range v {
		v[i] = aligned()
	}
	two := func(f reduce.Func) func() {
		if f == nil {
			return nil
		}
		return func() { f(v[0], v[1], v[2], n) }
	}
	if o, is := map[string]op.Op{"sum": op.Sum, "prod": op.Prod, "min": op.Min, "max": op.Max}[name]; is {
		return two(reduce.For(t, o))
	}
	switch name {
	case "stream":
		return two(reduce.ForStream(t, op.Sum))
	case "both":
		if f := reduce.ForBoth(t, op.Sum); f != nil {
			return func() { f(v[0], v[3], v[1], v[2], n) }
		}
	case "scale":
		if f := reduce.Scale(t); f != nil {
			return func() { f(v[0], n, 3) }
		}
	case "all": // of four vectors
		if f := reduce.ForSumAll(t, op.Sum); f != nil {
			return func() { f(v[0], v[1:], n) }
		}
	case "mean":
		if t.Half() || t.Float8() {
			return func() { reduce.MeanAll(t, v[0], v[1:], n) }
		}
	}
	return nil
}

// aligned is memory of its own, from a cache line on.
func aligned() unsafe.Pointer {
	b := make([]byte, size+64)
	return unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%64])
}
