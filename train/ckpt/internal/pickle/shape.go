package pickle

import (
	"fmt"
	"math/bits"
)

// Box is a part of a tensor.
type Box struct{ Offset, Size []int }

// Count is how many elements a shape has that Shape has made.
func Count(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}

// Shape are numbers whose product is at most 1<<48.
func Shape(v any) ([]int, error) {
	out, err := Numbers(v)
	n := 1
	for _, k := range out {
		if k > 1<<48/n {
			return nil, fmt.Errorf("%v is no shape", out)
		}
		n *= max(k, 1)
	}
	return out, err
}

// maxDims is more dimensions than PyTorch's tensors have.
const maxDims = 64

// Numbers is a tuple, a list or a torch.Size of numbers, none less than 0.
func Numbers(v any) ([]int, error) {
	if o, is := v.(*Object); is && Is(o.Class, "torch", "Size") {
		if args, is := o.Args.(Tuple); is && len(args) == 1 {
			v = args[0]
		}
	}
	list, is := v.(Tuple)
	if l, isList := v.(*List); isList {
		list, is = l.Items, true
	}
	if !is {
		return nil, fmt.Errorf("a %T in the place of a shape", v)
	}
	if len(list) > maxDims {
		return nil, fmt.Errorf("%d dimensions", len(list))
	}
	out := make([]int, len(list))
	for i, x := range list {
		k, is := x.(int64)
		if !is || k < 0 || int64(int(k)) != k {
			return nil, fmt.Errorf("%d (a %T) in dimension %d is no shape", k, x, i)
		}
		out[i] = int(k)
	}
	return out, nil
}

// Field is the field of an object's state.
func Field(v any, module, class, field string) any {
	o, is := v.(*Object)
	if !is || class != "" && !Is(o.Class, module, class) {
		return nil
	}
	d, _ := o.State.(*Dict)
	return d.Get(field)
}

// Rows calls f for each run of a box: where it is in the whole and in the box, and how long.
func Rows(shape, offset, size []int, f func(to, from, n int)) {
	last := len(shape) - 1
	if Count(size) == 0 || last < 0 {
		if last < 0 {
			f(0, 0, 1)
		}
		return
	}
	at := make([]int, len(shape))
	for from := 0; ; from += size[last] {
		to := 0
		for d := range shape {
			to = to*shape[d] + offset[d] + at[d]
		}
		f(to, from, size[last])
		d := last - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < size[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// Disjoint is an error if two boxes have an element in common. They have as many elements as the shape, so they then
// lack another.
func Disjoint(shape []int, n int, at func(i int) Box) error {
	if n < 2 {
		return nil
	}
	have := make([]uint64, Count(shape)/64+1)
	twice := -1
	for i := range n {
		p := at(i)
		Rows(shape, p.Offset, p.Size, func(to, _, n int) {
			for i := to; i < to+n; {
				k := min(64-i%64, to+n-i) // bits of one word
				mask := ^uint64(0) >> (64 - k) << (i % 64)
				if both := have[i/64] & mask; both != 0 {
					twice = i/64*64 + bits.TrailingZeros64(both)
				}
				have[i/64] |= mask
				i += k
			}
		})
	}
	if twice >= 0 {
		return fmt.Errorf("two of its boxes have element %d", twice)
	}
	return nil
}

// Spelled is a symbol's name, for messages: another value may be of any size, or contain itself.
func Spelled(v any) string {
	if s, is := v.(*Symbol); is {
		return s.Module + "." + s.Name
	}
	return fmt.Sprintf("a %T", v)
}
