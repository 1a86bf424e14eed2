package main

import "slices"

// form is what a kernel does with its memory.
type form int

const (
	binary form = iota // dst[i] = a[i] op b[i]
	scale              // dst[i] = dst[i] op by
	move               // dst[i] = src[i]
	both               // dst[i] = other[i] = a[i] op b[i]
)

// pointers are the names of a kernel's parameters that are pointers.
func (f form) pointers() []string {
	return [...][]string{binary: {"dst", "a", "b"}, scale: {"dst"}, move: {"dst", "src"},
		both: {"dst", "other", "a", "b"}}[f]
}

// parameter is one of a function.
type parameter struct{ name, typ string }

const pointer = "unsafe.Pointer"

// params are a kernel's parameters; what a scale divides by has the type.
func (f form) params(by string) (ps []parameter) {
	for _, name := range f.pointers() {
		ps = append(ps, parameter{name, pointer})
	}
	if ps = append(ps, parameter{"n", "int"}); f == scale {
		ps = append(ps, parameter{"by", by})
	}
	return ps
}

// sumSignature is the signature of a kernel that adds any number of vectors, and its comment.
func sumSignature(name string, weighted bool) (params []parameter, doc []string) {
	params = []parameter{{"dst", pointer}, {"srcs", pointer}, {"count", "int"}, {"at", "int"}, {"n", "int"}}
	if !weighted {
		return params, []string{
			name + " computes: for i := range n { dst[i] = srcs[0][i] + ... + srcs[count-1][i] }",
			"in float32, each vector from byte at on. srcs is an array of count pointers, 1 or more.",
		}
	}
	more := []parameter{{"weights", pointer}, {"stride", "int"}, {"ends", "int"}, {"mul", "float32"}, {"div", "float32"}}
	return append(params, more...), []string{
		name + " computes: for i := range n { dst[i] = (w0*srcs[0][i] + ... + w*srcs[count-1][i])*mul/div }",
		"in float32, each vector from byte at on. srcs is an array of count pointers, 1 or more, and weights",
		"one of float32, each stride bytes behind the one before. Where ends is 0 it leaves out mul and div.",
	}
}

// arithmetic names what kernels compute, in the order in which a row of kernels has its operations.
var arithmetic = [...]struct{ name, does string }{
	{"sum", "a[i] + b[i]"}, {"prod", "a[i] * b[i]"}, {"min", "min(a[i], b[i])"}, {"max", "max(a[i], b[i])"},
}

// streams reports whether there are sums of the type with non-temporal stores.
func streams(typ string) bool {
	return slices.Contains([]string{"Int32", "Int64", "Float32", "Float64"}, typ)
}
