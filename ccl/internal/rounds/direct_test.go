package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// The edges are those of all ranks together, in whole elements: everything, if no page is a result's own.
func TestEdges(t *testing.T) {
	page := uint64(shm.Page)
	at := func(off uint64) shm.Span { return shm.Span{Base: 1 << 30, Size: 100 * page, At: off} }
	for _, tc := range []struct {
		name       string
		n, elem    int
		results    [2]shm.Span
		lead, tail int
	}{
		{"whole pages", 4 * shm.Page, 4, [2]shm.Span{at(0), at(page)}, 0, 0},
		{"one begins in a page", 4 * shm.Page, 4, [2]shm.Span{at(0), at(2*page - 64)}, 64, shm.Page - 64},
		{"both do", 4 * shm.Page, 4, [2]shm.Span{at(page - 128), at(2*page - 64)}, 128, shm.Page - 64},
		{"an element over the edge", 4 * shm.Page, 8, [2]shm.Span{at(page - 4), at(0)}, 8, shm.Page},
		{"no page of its own", 100, 4, [2]shm.Span{at(0), at(8)}, 100, 0},
		{"edges that meet", shm.Page + 100, 4, [2]shm.Span{at(page / 2), at(0)}, shm.Page / 2, shm.Page/2 + 100},
		{"edges that overlap", shm.Page * 3 / 2, 4, [2]shm.Span{at(64), at(page / 4)}, shm.Page * 3 / 2, 0},
	} {
		c := new(Team)
		c.bind(seat{n: 2, mem: new(reach.Reach)})
		c.offers.posted = []offer{{dst: tc.results[0]}, {dst: tc.results[1]}}
		lead, tail := c.inPlace.edges(tc.n, tc.elem)
		assert.Equal(t, []int{tc.lead, tc.tail}, []int{lead, tail}, tc.name)
		c.mem.Known.All = true
		lead, tail = c.inPlace.edges(tc.n, tc.elem)
		assert.Equal(t, []int{0, 0}, []int{lead, tail}, "%s: goroutine ranks", tc.name)
	}
}

// A rank reduces its part into the results of all ranks, and touches nothing else of them.
func TestDirectPart(t *testing.T) {
	for _, n := range []int{2, 3} {
		all := ranksOf(t, n, byDirect)
		const count = 3 * tuning.DirectPieces * tuning.FoldPiece / 4
		c := all[1]
		d := c.inPlace.directly()
		results := make([][]int32, n)
		for r := range all {
			results[r] = make([]int32, count)
			d.src[r], d.dst[r] = reach.Own(op.Ptr(bytesOf(vector(r, 0, count)))), reach.Own(op.Ptr(bytesOf(results[r])))
		}
		k := callOf(call.AllReduce, -1, count, results[1], vector(1, 0, count))
		k.Fold, k.Both = minus, nil
		enter(c, k)
		require.Nil(t, c.offers.acquaint(t.Context(), k))
		from, end := 4000, count-4000
		require.Nil(t, c.inPlace.directPart(t.Context(), k, 4*from, 4*end))
		want := difference(n, count)
		clear(want[:from])
		clear(want[end:])
		for r := range results {
			same(t, want, results[r], "the result of rank %d of %d", r, n)
		}
	}
}

// Where results share pages with something else, a rank stages what it has reduced of those, and the others take it from
// there: together with what is written in place that is the whole result, of which rank r's part is reduced by rank r alone.
func TestStagedEdges(t *testing.T) {
	const n, count = 3, 5000
	for _, tc := range []struct{ lead, tail int }{{0, 64}, {64, 0}, {400, 8000}, {4 * count, 0}, {12_000, 4000}} {
		all := ranksOf(t, n, byDirect)
		want := difference(n, count)
		results := make([][]int32, n)
		for r := range results {
			results[r] = make([]int32, count)
		}
		round := all[0].rank.Order.Round + 1
		for me, c := range all {
			d := c.inPlace.directly()
			for r := range n {
				d.src[r], d.dst[r] = reach.Own(op.Ptr(bytesOf(vector(r, 0, count)))), reach.Own(op.Ptr(bytesOf(results[r])))
			}
			k := callOf(call.AllReduce, -1, count, results[me], vector(me, 0, count))
			k.Fold = minus
			enter(c, k)
			require.Nil(t, c.offers.acquaint(t.Context(), k))
			from, end := c.staging.part(4*count, me)
			require.Nil(t, c.inPlace.stageEdges(t.Context(), k, d, round, from, end, tc.lead, tc.tail))
			if from, end = max(from, tc.lead), min(end, 4*count-tc.tail); from < end {
				require.Nil(t, c.inPlace.directPart(t.Context(), k, from, end))
			}
		}
		for me, c := range all {
			k := callOf(call.AllReduce, -1, count, results[me], vector(me, 0, count))
			require.Nil(t, c.inPlace.takeEdges(k, round, tc.lead, tc.tail))
			same(t, want, results[me], "rank %d, edges %d and %d", me, tc.lead, tc.tail)
		}
	}
}

// Both ways in which ranks of several processes read each other's operands give the sum in the order of ranks.
func TestAllReduceByReading(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, count := range []int{100, tuning.ReadPiece/4 + 3, 100_000} {
			for _, halves := range []bool{true, false} {
				if n > 2 && !halves {
					continue
				}
				all := ranksOf(t, n, byRead)
				vectors, results := make([][]int32, n), make([][]int32, n)
				for r := range all {
					vectors[r], results[r] = vector(r, 0, count), make([]int32, count)
				}
				atOnce(t, all, func(c *Team) *call.Fault {
					for r := range c.offers.posted {
						c.offers.posted[r] = c.offers.newOffer(bytesOf(vectors[r]), bytesOf(results[r]))
					}
					k := callOf(call.AllReduce, -1, count, results[c.me], vectors[c.me])
					k.Fold = minus
					enter(c, k)
					defer c.rank.Wake()
					if halves {
						return c.allReduceByHalves(t.Context(), k)
					}
					return c.allReduceByRead(t.Context(), k)
				})
				for r := range all {
					same(t, difference(n, count), results[r], "rank %d of %d, halves %v", r, n, halves)
				}
			}
		}
	}
}
