//go:build (nccl || rccl) && cgo && linux

package native

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/internal/op"
)

// encode is x, a small number that the type has exactly, in its bytes.
func encode(t op.Type, x float64) []byte {
	b := make([]byte, t.Size())
	switch t {
	case op.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
	case op.Float64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
	case op.BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(math.Float32bits(float32(x))>>16))
	case op.Float16:
		binary.LittleEndian.PutUint16(b, uint16(small(x, 10, 15)))
	case op.Float8E4M3:
		b[0] = byte(small(x, 3, 7))
	case op.Float8E5M2:
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

func encodeAll(t op.Type, xs []float64) []byte {
	var b []byte
	for _, x := range xs {
		b = append(b, encode(t, x)...)
	}
	return b
}

// input is what rank r has at i: small enough for the product of 4 ranks in an 8-bit float. Average
// needs sums that the number of ranks divides.
func input(o op.Op, r, n, i int) float64 {
	switch {
	case o == op.Avg && r == 0:
		return float64(n + i%2)
	case o == op.Avg:
		return float64(i % 2)
	case o == op.Prod:
		return float64(1 + (i+r)%2)
	}
	return float64((i + r) % 3)
}

// reduced is what the ranks' inputs at i come to.
func reduced(o op.Op, n, i int) float64 {
	x := input(o, 0, n, i)
	for r := 1; r < n; r++ {
		y := input(o, r, n, i)
		switch o {
		case op.Sum, op.Avg:
			x += y
		case op.Prod:
			x *= y
		case op.Min:
			x = min(x, y)
		case op.Max:
			x = max(x, y)
		}
	}
	if o == op.Avg {
		x /= float64(n)
	}
	return x
}

// row is input(op, r, n, from..from+k).
func row(o op.Op, r, n, from, k int) []float64 {
	xs := make([]float64, k)
	for i := range xs {
		xs[i] = input(o, r, n, from+i)
	}
	return xs
}

// example is one call as one rank makes it: what it has, and what it must get. A nil is no buffer.
type example struct {
	call      op.Call
	src, want []float64
}

// kinds are all calls but the point-to-point ones, which need pairs, and SendRecv.
var kinds = []op.Kind{
	op.AllReduce, op.Reduce, op.ReduceScatter, op.ReduceScatterV, op.Broadcast, op.AllGather, op.AllGatherV,
	op.Gather, op.GatherV, op.Scatter, op.ScatterV, op.AllToAll, op.AllToAllV, op.SendRecv, op.Barrier,
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
func exampleOf(kind op.Kind, t op.Type, o op.Op, r, n, k int) example {
	root := n - 1
	e := example{call: op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: t, Op: o, Root: -1, Count: uint64(k)}}}}
	switch kind {
	case op.Reduce, op.Broadcast, op.Gather, op.GatherV, op.Scatter, op.ScatterV:
		e.call.Root = int32(root)
	}
	results := func(from, k int) []float64 {
		xs := make([]float64, k)
		for i := range xs {
			xs[i] = reduced(o, n, from+i)
		}
		return xs
	}
	dc := counts(n, k)
	at := op.Elements(dc[:r])
	switch kind {
	case op.AllReduce:
		e.src, e.want = row(o, r, n, 0, k), results(0, k)
	case op.Reduce:
		e.src = row(o, r, n, 0, k)
		if r == root {
			e.want = results(0, k)
		}
	case op.ReduceScatter:
		e.src, e.want = row(o, r, n, 0, k*n), results(r*k, k)
	case op.ReduceScatterV:
		e.call.DC = dc
		e.src, e.want = row(o, r, n, 0, op.Elements(dc)), results(at, dc[r])
	case op.Broadcast:
		if r == root {
			e.src = row(o, r, n, 0, k)
		}
		e.want = row(o, root, n, 0, k)
	case op.AllGather, op.Gather:
		e.src = row(o, r, n, 0, k)
		for p := range n {
			e.want = append(e.want, row(o, p, n, 0, k)...)
		}
	case op.AllGatherV, op.GatherV:
		e.call.DC = dc
		e.src = row(o, r, n, 0, dc[r])
		for p := range n {
			e.want = append(e.want, row(o, p, n, 0, dc[p])...)
		}
	case op.Scatter:
		if r == root {
			e.src = row(o, r, n, 0, k*n)
		}
		e.want = row(o, root, n, r*k, k)
	case op.ScatterV:
		e.call.DC = dc
		if r == root {
			e.src = row(o, r, n, 0, op.Elements(dc))
		}
		e.want = row(o, root, n, at, dc[r])
	case op.AllToAll:
		e.src = row(o, r, n, 0, k*n)
		for p := range n {
			e.want = append(e.want, row(o, p, n, r*k, k)...)
		}
	case op.AllToAllV:
		for p := range n {
			e.call.SC, e.call.DC = append(e.call.SC, pair(r, p, k)), append(e.call.DC, pair(p, r, k))
		}
		e.src = row(o, r, n, 0, op.Elements(e.call.SC))
		for p := range n {
			from := 0
			for q := range r {
				from += pair(p, q, k)
			}
			e.want = append(e.want, row(o, p, n, from, pair(p, r, k))...)
		}
	case op.SendRecv:
		from := (r + n - 1) % n
		e.call.Root, e.call.To = int32(from), (r+1)%n
		e.call.SrcN, e.call.Count = k+r, uint64(k+from)
		e.src, e.want = row(o, r, n, 0, k+r), row(o, from, n, 0, k+from)
	case op.Barrier:
		e.call.Count = 0
	}
	if (kind == op.Gather || kind == op.GatherV) && r != root {
		e.want = nil
	}
	return e
}

// inPlace is where src lies in dst, or dst in src: the larger of them is the buffer. Not ok: the kind has none.
func inPlace(e *example, r, n int) (srcAt, dstAt int, ok bool) {
	k, root := int(e.call.Count), r == int(e.call.Root)
	switch e.call.Kind {
	case op.AllReduce, op.AllToAll:
		return 0, 0, true
	case op.Reduce:
		return 0, 0, root
	case op.AllGather:
		return r * k, 0, true
	case op.AllGatherV:
		return op.Elements(e.call.DC[:r]), 0, true
	case op.Gather:
		return r * k, 0, root
	case op.GatherV:
		return op.Elements(e.call.DC[:r]), 0, root
	case op.ReduceScatter:
		return 0, r * k, true
	case op.ReduceScatterV:
		return 0, op.Elements(e.call.DC[:r]), true
	case op.Scatter:
		return 0, r * k, root
	case op.ScatterV:
		return 0, op.Elements(e.call.DC[:r]), root
	}
	return 0, 0, false
}
