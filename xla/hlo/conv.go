package hlo

import (
	"fmt"
	"slices"
	"strings"
)

// A Window says where a convolution or a pool looks along each spatial axis: those behind the first two,
// which are batch and channels, as PyTorch has them.
type Window struct {
	// Size is that of a pool. A convolution has its kernel's.
	Size []int
	// Stride is how far the window moves, 1 by default.
	Stride []int
	// Dilation is how far elements of a kernel are apart, 1 by default. A pool has none.
	Dilation []int
	// Pad is how many zeros are before and behind, none by default. A pool of the largest has -Inf.
	Pad [][2]int
	// Groups is the number of groups of channels, each convolved alone, 1 by default.
	Groups int
}

// fill has the defaults in place for windows of this size, and checks them against x. out are the spatial
// lengths of the result.
func (o *Window) fill(op string, x *Value, size []int) (out []int, ok bool) {
	n := len(x.dims) - 2
	o.Size = size
	ones := slices.Repeat([]int{1}, max(n, 0))
	if o.Stride == nil {
		o.Stride = ones
	}
	if o.Dilation == nil {
		o.Dilation = ones
	}
	if o.Pad == nil {
		o.Pad = make([][2]int, max(n, 0))
	}
	ok = n > 0 && len(size) == n && len(o.Stride) == n && len(o.Dilation) == n && len(o.Pad) == n && !x.t.integer()
	for i := 0; ok && i < n; i++ {
		ok = size[i] > 0 && o.Stride[i] > 0 && o.Dilation[i] > 0 && o.Pad[i][0] >= 0 && o.Pad[i][1] >= 0
		free := x.dims[2+i] + o.Pad[i][0] + o.Pad[i][1] - o.Dilation[i]*(size[i]-1) - 1
		ok = ok && free >= 0
		if ok {
			out = append(out, free/o.Stride[i]+1)
		}
	}
	if !ok {
		x.f.fail("%s: of %s: window %v, stride %v, dilation %v, padding %v", op, x.text(), size, o.Stride, o.Dilation, o.Pad)
	}
	return out, ok
}

// Conv is the convolution, as PyTorch has it, of x [N,C,..] with a kernel w [O,C/Groups,..], of one to any
// number of spatial axes: [N,O,..]. Its gradients are convolutions.
func Conv(x, w *Value, o Window) *Value {
	if !x.fits("Conv", w) {
		return x
	}
	g := max(o.Groups, 1)
	if len(x.dims) < 3 || len(w.dims) != len(x.dims) || x.t != w.t || w.dims[1]*g != x.dims[1] || w.dims[0]%g != 0 {
		x.f.fail("Conv: %s by %s in %d groups", x.text(), w.text(), g)
		return x
	}
	out, ok := o.fill("Conv", x, w.dims[2:])
	if !ok {
		return x
	}
	n := len(out)
	turn := append([]int{1, 0}, count(2, n)...) // batch and channels, or both kinds of channels
	return x.conv(w, append([]int{x.dims[0], w.dims[0]}, out...), conv{o.Stride, ones(n), o.Dilation, o.Pad, g, 1, false},
		func(d *Value) []*Value {
			px, pw := make([][2]int, n), make([][2]int, n)
			for i := range n {
				reach, wide := o.Dilation[i]*(o.Size[i]-1), (out[i]-1)*o.Stride[i]+1
				lo := reach - o.Pad[i][0]
				px[i] = [2]int{lo, x.dims[2+i] - wide + reach - lo}
				pw[i] = [2]int{o.Pad[i][0], reach + wide - x.dims[2+i] - o.Pad[i][0]}
			}
			// The kernel with its channels in and out exchanged, by group.
			each := append([]int{g, w.dims[0] / g}, w.dims[1:]...)
			back := w.Reshape(each...).Perm(append([]int{0, 2, 1}, count(3, n)...)...)
			back = back.Reshape(append([]int{x.dims[1], w.dims[0] / g}, o.Size...)...)
			dx := d.conv(back, x.dims, conv{ones(n), o.Stride, o.Dilation, px, g, 1, true}, nil)
			dw := x.Perm(turn...).conv(d.Perm(turn...), append([]int{w.dims[1], w.dims[0]}, o.Size...),
				conv{o.Dilation, ones(n), o.Stride, pw, 1, g, false}, nil)
			return []*Value{dx, dw.Perm(turn...)}
		})
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// conv are the attributes of a convolution.
type conv struct {
	stride, spread, dilation []int // spread is the dilation of the operand
	pad                      [][2]int
	groups, batches          int
	reversed                 bool
}

func (v *Value) conv(w *Value, dims []int, c conv, back Gradient) *Value {
	n := len(c.stride)
	var axes, reversed []string
	for i := range n {
		axes, reversed = append(axes, fmt.Sprint(i)), append(reversed, fmt.Sprint(c.reversed))
	}
	s := strings.Join(axes, ", ")
	return v.f.op("stablehlo.convolution", fmt.Sprintf("{window_strides = %s, padding = %s, lhs_dilation = %s, "+
		"rhs_dilation = %s, window_reversal = array<i1: %s>, dimension_numbers = #stablehlo.conv<[b, f, %s]x[o, i, %s]->[b, f, %s]>, "+
		"feature_group_count = %d : i64, batch_group_count = %d : i64%s}", array(c.stride), pads(c.pad), array(c.spread),
		array(c.dilation), strings.Join(reversed, ", "), s, s, s, c.groups, c.batches, v.f.precision()),
		v.t, dims, back, v, w)
}

func pads(pad [][2]int) string {
	var s []string
	for _, p := range pad {
		s = append(s, fmt.Sprintf("[%d, %d]", p[0], p[1]))
	}
	return fmt.Sprintf("dense<[%s]> : tensor<%dx2xi64>", strings.Join(s, ", "), len(pad))
}

// MaxPool is the largest of each window of x [N,C,..]. Its gradient goes to the first of those that are as large.
func MaxPool(x *Value, o Window) *Value {
	out, ok := o.fill("MaxPool", x, o.Size)
	if !ok {
		return x
	}
	y := x.window("maximum", x.least(), out, o)
	return With(y, []*Value{x}, func(d *Value) []*Value {
		size, stride, pad := o.whole()
		t := typeText(x.t, nil)
		choice := fmt.Sprintf("{\n^s(%%l: %s, %%r: %s):\n%%o = \"stablehlo.compare\"(%%l, %%r) {comparison_direction = "+
			"#stablehlo<comparison_direction GE>} : (%s, %s) -> tensor<i1>\n\"stablehlo.return\"(%%o) : (tensor<i1>) -> ()\n}", t, t, t, t)
		add := region("add", x.t)
		return []*Value{x.f.op("stablehlo.select_and_scatter", fmt.Sprintf("(%s, %s {window_dimensions = %s, window_strides = %s, padding = %s}",
			choice, add[1:], array(size), array(stride), pads(pad)), x.t, x.dims, nil, x, d, x.f.Const(x.t, 0))}
	})
}

// SumPool is the sum of each window of x [N,C,..]: divided by the number of elements of a window it is
// PyTorch's average. Sums of 16-bit types are rounded once.
func SumPool(x *Value, o Window) *Value {
	if x.t.narrow() {
		return SumPool(x.As(F32), o).As(x.t)
	}
	out, ok := o.fill("SumPool", x, o.Size)
	if !ok {
		return x
	}
	return With(x.window("add", x.f.Const(x.t, 0), out, o), []*Value{x}, func(d *Value) []*Value {
		// Each element gets what the windows got that it is in: sums over the gradient, spread by the stride.
		back := Window{Size: o.Size, Stride: ones(len(out)), Dilation: ones(len(out)), Pad: make([][2]int, len(out))}
		lo, hi, between := make([]int, len(x.dims)), make([]int, len(x.dims)), make([]int, len(x.dims))
		dims := slices.Clone(x.dims)
		for i := range out {
			lo[2+i], between[2+i] = o.Size[i]-1-o.Pad[i][0], o.Stride[i]-1
			dims[2+i] += o.Size[i] - 1
			hi[2+i] = dims[2+i] - lo[2+i] - (out[i]-1)*o.Stride[i] - 1
		}
		wide := x.f.op("stablehlo.pad", fmt.Sprintf("{edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s}",
			array(lo), array(hi), array(between)), x.t, dims, nil, d, x.f.Const(x.t, 0))
		return []*Value{wide.window("add", x.f.Const(x.t, 0), x.dims[2:], back)}
	})
}

func (v *Value) least() *Value { return v.f.Const(v.t, v.t.least()) }

// whole are size, stride and padding for all axes.
func (o *Window) whole() (size, stride []int, pad [][2]int) {
	return append([]int{1, 1}, o.Size...), append([]int{1, 1}, o.Stride...), append([][2]int{{}, {}}, o.Pad...)
}

func (v *Value) window(op string, init *Value, out []int, o Window) *Value {
	if slices.ContainsFunc(o.Dilation, func(d int) bool { return d != 1 }) {
		v.f.fail("a pool with dilation %v", o.Dilation)
	}
	size, stride, pad := o.whole()
	return v.f.op("stablehlo.reduce_window", fmt.Sprintf("%s {window_dimensions = %s, window_strides = %s, padding = %s}",
		region(op, v.t), array(size), array(stride), pads(pad)), v.t, append(slices.Clone(v.dims[:2]), out...), nil, v, init)
}
