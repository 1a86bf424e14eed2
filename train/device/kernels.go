package device

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/optim"
)

// What kernels.cu says of the kernels: the threads of a block, the elements of a thread, and the
// threads of a sum, whose parts are then added up to wide, to narrow, and to one.
const (
	threads = 256
	each    = 8
	lanes   = 1 << 17
	wide    = 4096
	narrow  = 64
)

// mergedRows is how many rows of attention are merged in one go: there are 8 bytes on the device for each.
const mergedRows = 1 << 20

// Types of elements, as kernels are listed by.
const (
	f32 = iota
	f64
	bf16
	types
)

// kinds are the names of types in those of kernels, and wordsOf how many words of 32 bits an
// element has; 0: half a one.
var (
	kinds   = [types]string{"f32", "f64", "bf16"}
	wordsOf = [types]int{1, 2, 0}
)

// kindOf is t, and false if there are no kernels for it.
func kindOf(t ccl.Type) (int, bool) {
	switch t {
	case ccl.TypeFloat32:
		return f32, true
	case ccl.TypeFloat64:
		return f64, true
	case ccl.TypeBFloat16:
		return bf16, true
	}
	return 0, false
}

// kernels are those of kernels.cu.
type kernels struct {
	zero, copy                  [2]*cuda.Kernel            // of halves and of whole words
	convert                     [types][types]*cuda.Kernel // to a type, of another
	add, scale, divide, squares [types]*cuda.Kernel
	adamw                       [2]*cuda.Kernel // f32, f64
	fold                        *cuda.Kernel
	mergeValues, mergeRows      *cuda.Kernel
}

// find finds all of them in m.
func (k *kernels) find(m *cuda.Module) (err error) {
	get := func(to **cuda.Kernel, name string) {
		if err == nil {
			*to, err = m.Kernel(name)
		}
	}
	for i, bits := range [2]string{"16", "32"} {
		get(&k.zero[i], "zero_"+bits)
		get(&k.copy[i], "copy_"+bits)
	}
	for i, name := range kinds {
		get(&k.add[i], "add_"+name)
		get(&k.scale[i], "scale_"+name)
		get(&k.divide[i], "divide_"+name)
		get(&k.squares[i], "squares_"+name)
		if i < len(k.adamw) {
			get(&k.adamw[i], "adamw_"+name)
		}
		for j, of := range kinds {
			if i != j {
				get(&k.convert[i][j], name+"_of_"+of)
			}
		}
	}
	get(&k.fold, "fold")
	get(&k.mergeValues, "merge_values")
	get(&k.mergeRows, "merge_rows")
	return err
}

// run starts k with as many threads as n elements take.
func (m *Memory) run(k *cuda.Kernel, n int, args ...cuda.Arg) error {
	return m.launch(k, (n+each-1)/each, args...)
}

// launch starts k with n threads, in whole blocks.
func (m *Memory) launch(k *cuda.Kernel, n int, args ...cuda.Arg) error {
	if k == nil {
		return errClosed
	}
	how := cuda.Shape{Grid: cuda.Dim{X: (n + threads - 1) / threads}, Block: cuda.Dim{X: threads}}
	if err := k.Launch(m.s, how, args...); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	return nil
}

var errClosed = fmt.Errorf("device: the Memory is closed: %w", cuda.ErrClosed)

// one is the address and the kind of b, and n how many elements there are.
func one(call string, b ccl.Buf) (at uintptr, kind, n int, err error) {
	if b.Len() == 0 {
		return 0, 0, 0, nil
	}
	kind, ok := kindOf(b.Type())
	if !ok {
		return 0, 0, 0, fmt.Errorf("device: %s: there are no kernels for %v", call, b.Type())
	}
	at, err = address(call, b)
	return at, kind, b.Len(), err
}

// two are those of dst, and the address and kind of src, which has as many.
func two(call string, dst, src ccl.Buf) (to, from uintptr, kind, other, n int, err error) {
	if dst.Len() != src.Len() {
		return 0, 0, 0, 0, 0, fmt.Errorf("device: %s: %d elements, and %d", call, dst.Len(), src.Len())
	}
	if to, kind, n, err = one(call, dst); err == nil {
		from, other, _, err = one(call, src)
	}
	return to, from, kind, other, n, err
}

func count(n int) cuda.Arg { return cuda.Value(uint64(n)) }

// Zero sets dst to zeros.
func (m *Memory) Zero(dst ccl.Buf) error {
	to, kind, n, err := one("Zero", dst)
	if err != nil || n == 0 {
		return err
	}
	return m.words(&m.k.zero, kind, n, cuda.Pointer(to))
}

// words runs a kernel on words of 32 bits, or on halves of them.
func (m *Memory) words(k *[2]*cuda.Kernel, kind, n int, addrs ...cuda.Arg) error {
	which := 0
	if wordsOf[kind] > 0 {
		which, n = 1, n*wordsOf[kind]
	}
	if len(addrs) == 1 {
		return m.run(k[which], n, addrs[0], count(n))
	}
	return m.run(k[which], n, addrs[0], addrs[1], count(n))
}

// Add computes dst += src, of one type.
func (m *Memory) Add(dst, src ccl.Buf) error {
	to, from, kind, other, n, err := two("Add", dst, src)
	if err != nil || n == 0 {
		return err
	}
	if kind != other {
		return fmt.Errorf("device: Add of %v to %v", src.Type(), dst.Type())
	}
	return m.run(m.k.add[kind], n, cuda.Pointer(to), cuda.Pointer(from), count(n))
}

// number is x in the type that elements of kind are computed in.
func number(kind int, x float64) cuda.Arg {
	if kind == f64 {
		return cuda.Value(x)
	}
	return cuda.Value(float32(x))
}

// Scale computes dst *= by.
func (m *Memory) Scale(dst ccl.Buf, by float64) error {
	to, kind, n, err := one("Scale", dst)
	if err != nil || n == 0 {
		return err
	}
	return m.run(m.k.scale[kind], n, cuda.Pointer(to), number(kind, by), count(n))
}

// Divide computes dst /= by.
func (m *Memory) Divide(dst ccl.Buf, by int) error {
	to, kind, n, err := one("Divide", dst)
	if err != nil || n == 0 {
		return err
	}
	return m.run(m.k.divide[kind], n, cuda.Pointer(to), number(kind, float64(by)), count(n))
}

// Convert computes dst = src. What does not fit is rounded to nearest even, float64 to bfloat16 by
// way of float32. src may be a slice of the host's, by [ccl.BufOf], of any of the three types.
// Several Converts to neighbouring parts of one buffer pack a bucket.
func (m *Memory) Convert(dst, src ccl.Buf) error {
	if b, kind, ok := hostBytes(src); ok {
		return m.upload(dst, b, kind, src.Len())
	}
	to, from, kind, other, n, err := two("Convert", dst, src)
	if err != nil || n == 0 {
		return err
	}
	return m.convert(to, from, kind, other, n)
}

func (m *Memory) convert(to, from uintptr, kind, of, n int) error {
	if kind == of {
		return m.words(&m.k.copy, kind, n, cuda.Pointer(to), cuda.Pointer(from))
	}
	return m.run(m.k.convert[kind][of], n, cuda.Pointer(to), cuda.Pointer(from), count(n))
}

// AdamW is optim.Apply: step number step, counted from 1, on the parameters p with the gradients g
// and the state avg and sq. All are float32, or all float64.
func (m *Memory) AdamW(h optim.AdamW, step int, p, g, avg, sq ccl.Buf) error {
	f, err := h.Factors(step)
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if g.Len() != p.Len() || avg.Len() != p.Len() || sq.Len() != p.Len() {
		return fmt.Errorf("device: AdamW: %d parameters, but %d gradients, and state of %d and %d", p.Len(), g.Len(),
			avg.Len(), sq.Len())
	}
	var at [4]uintptr
	var kind, n int
	for i, b := range [4]ccl.Buf{p, g, avg, sq} {
		if at[i], kind, n, err = one("AdamW", b); err != nil || n == 0 {
			return err
		}
		if b.Type() != p.Type() || kind == bf16 {
			return fmt.Errorf("device: AdamW of %v, %v, %v and %v: all must be float32, or all float64", p.Type(), g.Type(),
				avg.Type(), sq.Type())
		}
	}
	return m.run(m.k.adamw[kind], n, cuda.Pointer(at[0]), cuda.Pointer(at[1]), cuda.Pointer(at[2]), cuda.Pointer(at[3]),
		count(n),
		number(kind, f.Beta1), number(kind, f.Alpha1), number(kind, f.Beta2), number(kind, f.Alpha2),
		number(kind, f.Rate), number(kind, f.Root), number(kind, f.Keep), number(kind, f.Eps))
}

// Merge merges two blocks of attention, as ring attention does with what each rank's keys give:
// out, [rows][dim], are weighted sums of values, max the greatest score of each row, and sum the
// sum of exp(score-max). All of the first block become those of both. Everything is float32. The
// exponential is within 2 units in the last place.
func (m *Memory) Merge(out, max, sum, other, otherMax, otherSum ccl.Buf, dim int) error {
	rows := max.Len()
	if dim < 0 || dim > 1<<31 || out.Len() != rows*dim || other.Len() != out.Len() || sum.Len() != rows ||
		otherMax.Len() != rows || otherSum.Len() != rows {
		return fmt.Errorf("device: Merge of %d values in %d rows of %d with %d: maxima and sums of %d, %d and %d",
			out.Len(), rows, dim, other.Len(),
			sum.Len(), otherMax.Len(), otherSum.Len())
	}
	var at [6]uintptr
	var err error
	for i, b := range [6]ccl.Buf{out, max, sum, other, otherMax, otherSum} {
		if b.Type() != ccl.TypeFloat32 {
			return fmt.Errorf("device: Merge of %v; it merges float32", b.Type())
		}
		if at[i], _, _, err = one("Merge", b); err != nil {
			return err
		}
	}
	return m.merge(at, rows, dim)
}

// merge merges as many rows at a time as there is room for weights.
func (m *Memory) merge(at [6]uintptr, rows, dim int) (err error) {
	if m.module == nil {
		return errClosed
	}
	if m.weights == nil {
		if m.weights, err = cuda.Alloc[uint64](m.d, mergedRows); err != nil {
			return fmt.Errorf("device: Merge: %w", err)
		}
		m.ends = append(m.ends, m.weights.Free)
	}
	w := m.weights.Arg()
	for ; rows > 0; rows -= mergedRows {
		n := min(rows, mergedRows)
		err := m.run(m.k.mergeRows, n, cuda.Pointer(at[1]), cuda.Pointer(at[2]), cuda.Pointer(at[4]), cuda.Pointer(at[5]),
			w, count(n))
		if err == nil && dim > 0 {
			err = m.run(m.k.mergeValues, n*dim, cuda.Pointer(at[0]), cuda.Pointer(at[3]), w, count(n*dim),
				cuda.Value(uint32(dim)))
		}
		if err != nil {
			return err
		}
		for i, elements := range [6]int{n * dim, n, n, n * dim, n, n} {
			at[i] += uintptr(4 * elements)
		}
	}
	return nil
}
