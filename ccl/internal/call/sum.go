package call

import "unsafe"

// SumsAll reports whether k is such a sum.
func (k *Call) SumsAll(n int) bool { return n > 2 && k.All != nil }

// SumAll adds all of srcs, each of n bytes, and forgets where they were.
func (k *Call) SumAll(to unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	k.All(to, srcs, n/k.Elem)
	clear(srcs)
	if k.Scale != nil {
		k.Scale(to, n/k.Elem, len(srcs))
	}
}
