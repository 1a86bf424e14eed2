package ccl_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

type (
	truth bool
	phase complex64
)

// moves has each kind of call move elements of one type, and compares what comes: element i of rank r's block for rank to is
// value(r, to, i).
func moves[T ccl.Element](t testing.TB, c *ccl.Comm, n int, value func(r, to, i int) T) {
	ctx, me, size := t.Context(), c.Rank(), c.Size()
	block := func(r, to int) (b []T) {
		for i := range n {
			b = append(b, value(r, to, i))
		}
		return b
	}
	var mine, theirs, all []T
	for r := range size {
		mine, theirs, all = append(mine, block(me, r)...), append(theirs, block(r, me)...), append(all, block(r, 0)...)
	}
	got := make([]T, n*size)
	require.NoError(t, ccl.AllToAll(ctx, c, got, mine))
	require.Equal(t, theirs, got)
	require.NoError(t, ccl.AllGather(ctx, c, got, block(me, 0)))
	require.Equal(t, all, got)
	one := block(me, 0)
	require.NoError(t, ccl.Broadcast(ctx, c, one, size-1))
	require.Equal(t, block(size-1, 0), one)
	require.NoError(t, ccl.SendRecv(ctx, c, one, (me+size-1)%size, block(me, 1), (me+1)%size))
	require.Equal(t, block((me+size-1)%size, 1), one)
	require.NoError(t, c.On(nil).Scatter(ccl.BufOf(one), ccl.BufOf(mine), 0).Wait(ctx))
	require.Equal(t, block(0, me), one)
}

// sums has the kinds that reduce give want(i) of what each rank has at i, value(r, i).
func sums[T ccl.Element](t testing.TB, c *ccl.Comm, n int, op ccl.Op, value func(r, i int) T, want func(i int) T) {
	ctx, size := t.Context(), c.Size()
	x, all := make([]T, n*size), make([]T, n*size)
	for i := range x {
		x[i], all[i] = value(c.Rank(), i), want(i)
	}
	got := make([]T, n*size)
	require.NoError(t, ccl.AllReduce(ctx, c, got, x, op))
	require.Equal(t, all, got, "%v", op)
	part := make([]T, n)
	require.NoError(t, ccl.ReduceScatter(ctx, c, part, x, op))
	require.Equal(t, all[c.Rank()*n:(c.Rank()+1)*n], part, "%v", op)
	require.NoError(t, c.On(nil).Reduce(ccl.BufOf(got), ccl.BufOf(x), op, size-1).Wait(ctx))
	require.NoError(t, c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), op).Wait(ctx))
	require.Equal(t, all, x, "%v", op)
}

// Bool, complex numbers and bits, of every length class, in every way in which ranks talk.
func TestElements(t *testing.T) {
	counts := []int{1, 3, 100, 5_001, 100_003}
	if testing.Short() {
		counts = counts[:4]
	}
	for _, n := range []int{2, 3} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			for _, count := range counts {
				bit := func(r, i int) bool { return (r+i)%3 == 0 || i%7 == 0 }
				count1 := func(i int) (k int) {
					for r := range n {
						if bit(r, i) {
							k++
						}
					}
					return k
				}
				moves(t, c, count, func(r, to, i int) truth { return truth(bit(r+to, i)) })
				and, or := func(i int) bool { return count1(i) == n }, func(i int) bool { return count1(i) > 0 }
				for _, o := range []struct {
					op   ccl.Op
					want func(i int) bool
				}{{ccl.Min, and}, {ccl.BAnd, and}, {ccl.Max, or}, {ccl.BOr, or}, {ccl.BXor, func(i int) bool { return count1(i)%2 == 1 }}} {
					sums(t, c, count, o.op, bit, o.want)
				}
				part := func(r, i int) complex128 { return complex(float64(r*i%1000), float64(r-i%1000)) }
				moves(t, c, count, func(r, to, i int) phase { return phase(part(r+to, i)) })
				moves(t, c, count, func(r, to, i int) complex128 { return part(r+to, i) })
				total := func(i int) (z complex128) {
					for r := range n {
						z += part(r, i)
					}
					return z
				}
				sums(t, c, count, ccl.Sum, func(r, i int) complex64 { return complex64(part(r, i)) }, func(i int) complex64 { return complex64(total(i)) })
				sums(t, c, count, ccl.Sum, part, total)
				sums(t, c, count, ccl.Avg, part, func(i int) complex128 {
					return complex(real(total(i))/float64(n), imag(total(i))/float64(n))
				})
				word := func(r, i int) uint32 { return uint32(i*2654435761) ^ uint32(r)<<13 | 1<<uint(r) }
				for _, o := range []struct {
					op ccl.Op
					f  func(x, y uint32) uint32
				}{
					{ccl.BAnd, func(x, y uint32) uint32 { return x & y }},
					{ccl.BOr, func(x, y uint32) uint32 { return x | y }},
					{ccl.BXor, func(x, y uint32) uint32 { return x ^ y }},
				} {
					sums(t, c, count, o.op, word, func(i int) uint32 {
						x := word(0, i)
						for r := 1; r < n; r++ {
							x = o.f(x, word(r, i))
						}
						return x
					})
				}
			}
		})
	}
}

// What has no meaning is refused on this rank alone, and the Comm goes on.
func TestElementsRefused(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for _, tc := range []struct {
			typ ccl.Type
			ops []ccl.Op // that reduce it
		}{
			{ccl.TypeBool, []ccl.Op{ccl.Min, ccl.Max, ccl.BAnd, ccl.BOr, ccl.BXor}},
			{ccl.TypeComplex64, []ccl.Op{ccl.Sum, ccl.Avg}},
			{ccl.TypeComplex128, []ccl.Op{ccl.Sum, ccl.Avg}},
			{ccl.TypeFloat32, []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg}},
		} {
			for op := ccl.Sum; op <= ccl.BXor; op++ {
				err := c.Supports(ccl.KindAllReduce, tc.typ, op)
				require.Equal(t, slices.Contains(tc.ops, op), err == nil, "%v %v: %v", tc.typ, op, err)
			}
		}
		z := []complex64{1}
		e := wants(t, ccl.AllReduce(ctx, c, z, z, ccl.Prod), ccl.ErrUnsupported)
		require.Contains(t, e.Error(), "the cpu engine does not reduce complex64 by prod")
		works(ctx, t, c)
	})
}
