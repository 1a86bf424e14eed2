// Command cases makes random calls of package ccl over one engine and writes what came of each, so that engines can be
// compared: cases BACKEND FIRST N FILE. Ranks draw the same cases from the same numbers.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

var ctx = context.Background()

func main() {
	first, err := strconv.Atoi(os.Args[2])
	check(err)
	n, err := strconv.Atoi(os.Args[3])
	check(err)
	c, err := ccl.Join(ctx, &ccl.Options{Backend: os.Args[1], Timeout: time.Minute, Check: ccl.CheckStrict})
	check(err)
	out, err := os.Create(fmt.Sprintf("%s.%d", os.Args[4], c.Rank()))
	check(err)
	for i := first; i < first+n; i++ {
		t := &trial{rng: rand.New(rand.NewPCG(1, uint64(i))), c: c}
		fmt.Fprintln(out, i, t.run())
		runtime.GC()
	}
	check(out.Close())
	check(ccl.Barrier(ctx, c)) // an early end may have the launcher end the others before they have written all
	check(c.Close())
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// trial is one case.
type trial struct {
	rng *rand.Rand
	c   *ccl.Comm
}

// run is what came of a case: a digest of the results, or the error.
func (t *trial) run() string {
	switch k := t.rng.IntN(40); {
	case k == 0:
		return t.misuse()
	case k < 4:
		return t.split()
	case k < 12:
		return t.group()
	}
	switch t.rng.IntN(4) {
	case 0:
		return call[int32](t)
	case 1:
		return call[uint64](t)
	case 2:
		return call[float32](t)
	}
	return call[float64](t)
}

type number interface {
	int32 | uint64 | float32 | float64
}

// fill has values whose sums are exact in every type.
func fill[T number](rank, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T((rank*31 + i*7) % 101)
	}
	return x
}

func digest[T number](x []T, err error) string {
	if err != nil {
		return kind(err)
	}
	h := fnv.New64a()
	if len(x) > 0 {
		h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0]))))
	}
	return fmt.Sprintf("%d %x", len(x), h.Sum64())
}

// kind is what an error is, in which engines agree; its text names the engine.
func kind(err error) string {
	if errors.Is(err, ccl.ErrMismatch) {
		return "mismatch"
	}
	return err.Error()
}

// count is often 0, mostly small, and at times beyond what goes in one piece.
func (t *trial) count() int {
	switch t.rng.IntN(8) {
	case 0, 1:
		return 0
	case 2:
		return t.rng.IntN(40000)
	}
	return t.rng.IntN(50)
}

func call[T number](t *trial) string {
	c, r, n := t.c, t.c.Rank(), t.c.Size()
	counts, at, size := make([]int, n), 0, 0
	for i := range counts {
		counts[i] = t.count()
		if i < r {
			at += counts[i]
		}
		size += counts[i]
	}
	root, inPlace := t.rng.IntN(n), t.rng.IntN(2) == 0
	op := []ccl.Op{ccl.Sum, ccl.Min, ccl.Max}[t.rng.IntN(3)]
	own := func(x []T) []T { return x[at : at+counts[r]] }
	switch t.rng.IntN(8) {
	case 0:
		src := fill[T](r, size)
		dst := make([]T, size)
		if inPlace {
			dst = src
		}
		err := ccl.AllReduce(ctx, c, dst, src, op)
		return digest(dst, err)
	case 1:
		src := fill[T](r, size)
		dst := make([]T, counts[r])
		if inPlace {
			dst = own(src)
		}
		err := ccl.ReduceScatterV(ctx, c, dst, src, counts, op)
		return digest(dst, err)
	case 2:
		x := fill[T](r, size)
		err := ccl.Broadcast(ctx, c, x, root)
		return digest(x, err)
	case 3:
		dst, src := make([]T, size), fill[T](r, counts[r])
		if inPlace {
			copy(own(dst), src)
			src = own(dst)
		}
		err := ccl.AllGatherV(ctx, c, dst, counts, src)
		return digest(dst, err)
	case 4:
		dst, src := make([]T, size), fill[T](r, counts[r])
		if inPlace && r == root {
			copy(own(dst), src)
			src = own(dst)
		}
		err := ccl.GatherV(ctx, c, dst, counts, src, root)
		if r != root {
			dst = nil
		}
		return digest(dst, err)
	case 5:
		src, dst := fill[T](root, size), make([]T, counts[r])
		if inPlace && r == root {
			dst = own(src)
		}
		err := ccl.ScatterV(ctx, c, dst, src, counts, root)
		return digest(dst, err)
	case 6:
		src := fill[T](r, size)
		dst := make([]T, size)
		if inPlace {
			dst = src
		}
		err := ccl.Reduce(ctx, c, dst, src, op, root)
		if r != root {
			dst = nil
		}
		return digest(dst, err)
	}
	// What rank i gives rank j is what j gives i, so that it may be in place.
	each := make([]int, n)
	total := 0
	for i := range n {
		for j := i; j < n; j++ {
			k := t.count()
			if i == r {
				each[j] = k
			} else if j == r {
				each[i] = k
			}
		}
	}
	for _, k := range each {
		total += k
	}
	src := fill[T](r, total)
	dst := make([]T, total)
	if inPlace {
		dst = src
	}
	err := ccl.AllToAllV(ctx, c, dst, each, src, each)
	return digest(dst, err)
}

// group is messages around the ring, among a reduction, in one group; no call waits for one after it.
func (t *trial) group() string {
	r, n := t.c.Rank(), t.c.Size()
	var results [][]int32
	err := t.c.On(nil).Group(func(g ccl.Queue) error {
		for range 1 + t.rng.IntN(4) {
			k, by := 1+t.count(), 1+t.rng.IntN(n)
			dst := make([]int32, k)
			results = append(results, dst)
			g.Send(ccl.BufOf(fill[int32](r, k)), (r+by)%n)
			g.Recv(ccl.BufOf(dst), (r-by+2*n)%n)
		}
		sum := fill[int32](r, t.count())
		results = append(results, sum)
		g.AllReduce(ccl.BufOf(sum), ccl.BufOf(sum), ccl.Sum)
		return nil
	}).Wait(ctx)
	var all []int32
	for _, x := range results {
		all = append(all, x...)
	}
	return digest(all, err)
}

// split makes a call on a part of the ranks, whose colors and keys are any ints.
func (t *trial) split() string {
	n := t.c.Size()
	colors, keys := make([]int, n), make([]int, n)
	for i := range n {
		colors[i], keys[i] = t.rng.IntN(3)<<32, int(t.rng.Uint64())
	}
	part, err := t.c.Split(ctx, colors[t.c.Rank()], keys[t.c.Rank()])
	if err != nil {
		return kind(err)
	}
	// Parts draw different numbers from here on.
	result := call[int32](&trial{rng: rand.New(rand.NewPCG(2, t.rng.Uint64())), c: part})
	return fmt.Sprint(part.Rank(), " of ", part.Size(), " ", result, " ", part.Close())
}

// misuse has one rank of a part bring another count than the others: all get an error, and no result. CheckStrict finds
// it before the library is called, which cannot be interrupted.
func (t *trial) misuse() string {
	part, err := t.c.Split(ctx, 0, 0)
	if err != nil {
		return kind(err)
	}
	k := 1 + t.count()
	if part.Rank() == t.rng.IntN(part.Size()) {
		k++
	}
	x := fill[int32](part.Rank(), k)
	err = ccl.AllReduce(ctx, part, x, x, ccl.Sum)
	part.Close()
	return digest(x, err)
}
