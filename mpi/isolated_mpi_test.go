//go:build mpi && cgo

package mpi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/mpi"
)

// TestLargeFromAnySource has all ranks send large messages to rank 0, which takes them as they come: each is of
// one sender.
func TestLargeFromAnySource(t *testing.T) {
	mpi.SetLimit(t, 4)
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	const each = 50
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			require.NoError(t, mpi.Barrier(way.ctx, c))
			if me > 0 {
				for k := range each {
					buf := make([]int32, 5+k%8)
					for i := range buf {
						buf[i] = int32(me<<16 + k)
					}
					require.NoError(t, mpi.Send(way.ctx, c, buf, 0, 9))
				}
				return
			}
			next := make([]int, n)
			for range each * (n - 1) {
				buf := make([]int32, 20) // longer than the message
				st, err := mpi.Recv(way.ctx, c, buf, mpi.AnySource, 9)
				require.NoError(t, err)
				k := next[st.Source]
				next[st.Source]++
				require.Equal(t, 5+k%8, st.Count)
				for _, x := range buf[:st.Count] {
					require.Equal(t, int32(st.Source<<16+k), x)
				}
			}
		})
	}
}

// TestReceiveBesideCollectives has a receive of anything outstanding while collectives go in pieces: it gets the
// message that is for it, and they get theirs.
func TestReceiveBesideCollectives(t *testing.T) {
	mpi.SetLimit(t, 4)
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	if n == 1 {
		return
	}
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			within(t, func() {
				ctx := way.ctx
				from, to := (me+n-1)%n, (me+1)%n
				buf := []int32{-7}
				r, err := mpi.Irecv(c, buf, mpi.AnySource, mpi.AnyTag)
				require.NoError(t, err)
				require.NoError(t, mpi.Barrier(ctx, c))

				const k = 5
				counts := equal(n, k)
				all, dst := make([]int32, n*k), make([]int32, n*k)
				require.NoError(t, mpi.Gather(ctx, c, all, vector[int32](me, k), 0))
				if me == 0 {
					require.Equal(t, gathered[int32](counts), all)
				}
				part := make([]int32, k)
				require.NoError(t, mpi.Scatter(ctx, c, part, gathered[int32](counts), 0))
				require.Equal(t, vector[int32](me, k), part)
				require.NoError(t, mpi.AllToAll(ctx, c, dst, vector[int32](me, n*k)))
				require.Equal(t, exchanged[int32](me, counts, counts), dst)
				require.NoError(t, mpi.AllToAllV(ctx, c, dst, counts, vector[int32](me, n*k), counts))
				require.Equal(t, exchanged[int32](me, counts, counts), dst)

				require.NoError(t, mpi.Send(ctx, c, []int32{int32(me)}, to, 1))
				st, err := r.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, mpi.Status{Source: from, Tag: 1, Count: 1}, st)
				require.Equal(t, int32(from), buf[0])
			})
		})
	}
}

// TestEmptyBlocks has ranks without elements, in place and not, in every call with counts by rank. What is empty is
// nil, a slice of its own, or the place where the block would be.
func TestEmptyBlocks(t *testing.T) {
	c := mpi.World()
	n := c.Size()
	for _, way := range ways(t) {
		for _, inPlace := range []bool{false, true} {
			for mask := range 1 << n {
				counts := make([]int, n)
				for r := range counts {
					counts[r] = mask >> r & 1 * 3
				}
				t.Run(fmt.Sprintf("%s, in place %v, %v", way.name, inPlace, counts), func(t *testing.T) {
					within(t, func() { emptyBlocks(t, way.ctx, c, counts, inPlace) })
				})
			}
		}
	}
}

func emptyBlocks(t *testing.T, ctx context.Context, c *mpi.Comm, counts []int, inPlace bool) {
	n, me := c.Size(), c.Rank()
	at, size := op.Elements(counts[:me]), op.Elements(counts)
	mine := func(buf []int32) []int32 { return buf[at : at+counts[me]] }

	src, dst := vector[int32](me, size), make([]int32, counts[me])
	if inPlace {
		dst = src[:counts[me]]
	}
	require.NoError(t, mpi.ReduceScatterV(ctx, c, dst, src, counts, mpi.Sum))
	require.Equal(t, mine(reduced[int32](mpi.Sum, n-1, size)), dst)

	all := make([]int32, size)
	src = vector[int32](me, counts[me])
	if inPlace {
		copy(mine(all), src)
		src = mine(all)
	}
	require.NoError(t, mpi.AllGatherV(ctx, c, all, counts, src))
	require.Equal(t, gathered[int32](counts), all)

	for root := range n {
		all = make([]int32, size)
		src = vector[int32](me, counts[me])
		if inPlace && me == root {
			copy(mine(all), src)
			src = mine(all)
		}
		require.NoError(t, mpi.GatherV(ctx, c, all, counts, src, root))
		all = gathered[int32](counts)
		dst = make([]int32, counts[me])
		if inPlace && me == root {
			dst = mine(all)
		}
		require.NoError(t, mpi.ScatterV(ctx, c, dst, all, counts, root))
		require.Equal(t, vector[int32](me, counts[me]), dst)
	}

	// Ranks with a count exchange two elements each; the others nothing, and their slices are nil.
	each := make([]int, n)
	var send, want []int32
	for r := range n {
		if counts[me] > 0 && counts[r] > 0 {
			each[r] = 2
			send = append(send, int32(10*me+r), int32(10*me+r))
			want = append(want, int32(10*r+me), int32(10*r+me))
		}
	}
	got := make([]int32, len(send))
	if inPlace {
		got = send
	}
	require.NoError(t, mpi.AllToAllV(ctx, c, got, each, send, each))
	require.ElementsMatch(t, want, got)
	if len(want) > 0 {
		require.Equal(t, want, got)
	}
}

// TestReduceInPlace has each rank as the root of a vector that libraries treat as a long one.
func TestReduceInPlace(t *testing.T) {
	c := mpi.World()
	const k = 40_000
	for _, way := range ways(t) {
		for root := range c.Size() {
			x := vector[int32](c.Rank(), k)
			dst := x
			if c.Rank() != root {
				dst = nil
			}
			require.NoError(t, mpi.Reduce(way.ctx, c, dst, x, mpi.Sum, root))
			if c.Rank() == root {
				require.Equal(t, reduced[int32](mpi.Sum, c.Size()-1, k), x)
			}
		}
	}
}
