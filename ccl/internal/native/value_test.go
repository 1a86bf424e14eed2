//go:build (nccl || rccl) && cgo && linux

package native

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/internal/engine"
)

// encode is x, a small number that the type has exactly, in its bytes.
func encode(t engine.Type, x float64) []byte {
	b := make([]byte, types[t].width)
	switch t {
	case engine.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
	case engine.Float64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
	case engine.BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(math.Float32bits(float32(x))>>16))
	case engine.Float16:
		binary.LittleEndian.PutUint16(b, uint16(small(x, 10, 15)))
	case engine.Float8E4M3:
		b[0] = byte(small(x, 3, 7))
	case engine.Float8E5M2:
		b[0] = byte(small(x, 2, 15))
	default:
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], uint64(int64(x)))
		copy(b, w[:])
	}
	return b
}

// small is a positive normal number with so many bits of mantissa.
func small(x float64, mantissa, bias int) int {
	if x == 0 {
		return 0
	}
	f, e := math.Frexp(x) // f in [0.5, 1)
	return (e-1+bias)<<mantissa | int((2*f-1)*float64(int(1)<<mantissa))
}

func encodeAll(t engine.Type, xs []float64) []byte {
	var b []byte
	for _, x := range xs {
		b = append(b, encode(t, x)...)
	}
	return b
}

// input is what rank r has at i: small enough for the product of 4 ranks in an 8-bit float. Average
// needs sums that the number of ranks divides.
func input(op engine.Op, r, n, i int) float64 {
	switch {
	case op == engine.Avg && r == 0:
		return float64(n + i%2)
	case op == engine.Avg:
		return float64(i % 2)
	case op == engine.Prod:
		return float64(1 + (i+r)%2)
	}
	return float64((i + r) % 3)
}

// reduced is what the ranks' inputs at i come to.
func reduced(op engine.Op, n, i int) float64 {
	x := input(op, 0, n, i)
	for r := 1; r < n; r++ {
		y := input(op, r, n, i)
		switch op {
		case engine.Sum, engine.Avg:
			x += y
		case engine.Prod:
			x *= y
		case engine.Min:
			x = min(x, y)
		case engine.Max:
			x = max(x, y)
		}
	}
	if op == engine.Avg {
		x /= float64(n)
	}
	return x
}

// row is input(op, r, n, from..from+k).
func row(op engine.Op, r, n, from, k int) []float64 {
	xs := make([]float64, k)
	for i := range xs {
		xs[i] = input(op, r, n, from+i)
	}
	return xs
}

// example is one call as one rank makes it: what it has, and what it must get. A nil is no buffer.
type example struct {
	call      engine.Call
	src, want []float64
}

// kinds are all calls but the point-to-point ones, which need pairs, and SendRecv.
var kinds = []engine.Kind{
	engine.AllReduce, engine.Reduce, engine.ReduceScatter, engine.ReduceScatterV, engine.Broadcast, engine.AllGather, engine.AllGatherV,
	engine.Gather, engine.GatherV, engine.Scatter, engine.ScatterV, engine.AllToAll, engine.AllToAllV, engine.SendRecv, engine.Barrier,
}

// reduces reports whether a kind has an operator.
func reduces(k engine.Kind) bool {
	return k == engine.AllReduce || k == engine.Reduce || k == engine.ReduceScatter || k == engine.ReduceScatterV
}

// counts are those of the V kinds, by rank; one is 0.
func counts(n, k int) []int {
	c := make([]int, n)
	for r := range c {
		c[r] = (k + r) * (r % 3)
	}
	return c
}

// pair is how much rank s sends to rank r in AllToAllV.
func pair(s, r, k int) int { return (s + 2*r) % 3 * k }

// exampleOf is a call of k elements, or of blocks of k, on rank r of n.
func exampleOf(kind engine.Kind, t engine.Type, op engine.Op, r, n, k int) example {
	root := n - 1
	e := example{call: engine.Call{Kind: kind, Type: t, Op: op, Root: -1, Count: k}}
	switch kind {
	case engine.Reduce, engine.Broadcast, engine.Gather, engine.GatherV, engine.Scatter, engine.ScatterV:
		e.call.Root = root
	}
	results := func(from, k int) []float64 {
		xs := make([]float64, k)
		for i := range xs {
			xs[i] = reduced(op, n, from+i)
		}
		return xs
	}
	dc := counts(n, k)
	at := sum(dc[:r])
	switch kind {
	case engine.AllReduce:
		e.src, e.want = row(op, r, n, 0, k), results(0, k)
	case engine.Reduce:
		e.src = row(op, r, n, 0, k)
		if r == root {
			e.want = results(0, k)
		}
	case engine.ReduceScatter:
		e.src, e.want = row(op, r, n, 0, k*n), results(r*k, k)
	case engine.ReduceScatterV:
		e.call.DC = dc
		e.src, e.want = row(op, r, n, 0, sum(dc)), results(at, dc[r])
	case engine.Broadcast:
		if r == root {
			e.src = row(op, r, n, 0, k)
		}
		e.want = row(op, root, n, 0, k)
	case engine.AllGather, engine.Gather:
		e.src = row(op, r, n, 0, k)
		for p := range n {
			e.want = append(e.want, row(op, p, n, 0, k)...)
		}
	case engine.AllGatherV, engine.GatherV:
		e.call.DC = dc
		e.src = row(op, r, n, 0, dc[r])
		for p := range n {
			e.want = append(e.want, row(op, p, n, 0, dc[p])...)
		}
	case engine.Scatter:
		if r == root {
			e.src = row(op, r, n, 0, k*n)
		}
		e.want = row(op, root, n, r*k, k)
	case engine.ScatterV:
		e.call.DC = dc
		if r == root {
			e.src = row(op, r, n, 0, sum(dc))
		}
		e.want = row(op, root, n, at, dc[r])
	case engine.AllToAll:
		e.src = row(op, r, n, 0, k*n)
		for p := range n {
			e.want = append(e.want, row(op, p, n, r*k, k)...)
		}
	case engine.AllToAllV:
		for p := range n {
			e.call.SC, e.call.DC = append(e.call.SC, pair(r, p, k)), append(e.call.DC, pair(p, r, k))
		}
		e.src = row(op, r, n, 0, sum(e.call.SC))
		for p := range n {
			from := 0
			for q := range r {
				from += pair(p, q, k)
			}
			e.want = append(e.want, row(op, p, n, from, pair(p, r, k))...)
		}
	case engine.SendRecv:
		e.call.Root, e.call.To = (r+n-1)%n, (r+1)%n
		e.call.Sent, e.call.Count = k+r, k+e.call.Root
		e.src, e.want = row(op, r, n, 0, k+r), row(op, e.call.Root, n, 0, k+e.call.Root)
	case engine.Barrier:
		e.call.Count = 0
	}
	if (kind == engine.Gather || kind == engine.GatherV) && r != root {
		e.want = nil
	}
	return e
}

// inPlace is where src lies in dst, or dst in src: the larger of them is the buffer. Not ok: the kind has none.
func inPlace(e *example, r, n int) (srcAt, dstAt int, ok bool) {
	k := e.call.Count
	switch e.call.Kind {
	case engine.AllReduce, engine.AllToAll:
		return 0, 0, true
	case engine.Reduce:
		return 0, 0, r == e.call.Root
	case engine.AllGather:
		return r * k, 0, true
	case engine.AllGatherV:
		return sum(e.call.DC[:r]), 0, true
	case engine.Gather:
		return r * k, 0, r == e.call.Root
	case engine.GatherV:
		return sum(e.call.DC[:r]), 0, r == e.call.Root
	case engine.ReduceScatter:
		return 0, r * k, true
	case engine.ReduceScatterV:
		return 0, sum(e.call.DC[:r]), true
	case engine.Scatter:
		return 0, r * k, r == e.call.Root
	case engine.ScatterV:
		return 0, sum(e.call.DC[:r]), r == e.call.Root
	}
	return 0, 0, false
}
