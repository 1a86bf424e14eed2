// Package cu lets streams and memory of gorgonia.org/cu be used in collectives: a [Stream] is a ccl.Stream, a [Mem] a
// ccl.Memory.
//
//	import (
//		"github.com/goccl/goccl/interop/cu"
//		gorgonia "gorgonia.org/cu"
//	)
//
//	s, err := gorgonia.MakeStream(gorgonia.DefaultStream)
//	p, err := gorgonia.MemAlloc(4 * n)
//	x, err := cu.Memory[float32](p, n, device)
//	c.On(cu.NewStream(s)).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
//
// gorgonia.org/cu is linked to the CUDA driver, and ends the program at its start where there is no
// GPU. So this package is a module of its own, and its code is behind the tag cu: build with -tags
// cu,nccl, CUDA 12's cuda.h (not 13's) and libcuda.
package cu
