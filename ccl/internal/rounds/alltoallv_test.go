package rounds

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// What a rank reads in a header is what its writer said. Of two ranks, one word says it; of more, where each block begins.
func TestHeaderV(t *testing.T) {
	type said struct {
		at, length     uint64
		where, largest int
	}
	for _, tc := range []struct {
		name   string
		n, me  int
		header []uint64
		want   said
	}{
		{"two ranks, behind it", 2, 1, []uint64{100<<2 + vBehind}, said{0, 100, vBehind, 100}},
		{"two ranks, staged", 2, 0, []uint64{5000<<2 + vStaged}, said{0, 5000, vStaged, 5000}},
		{"two ranks, offered", 2, 0, []uint64{5000<<2 + vOffered}, said{0, 5000, vOffered, 5000}},
		{"behind it", 3, 1, []uint64{0, 8, 20, 60, 0}, said{8, 12, vBehind, 0}},
		{"the last", 3, 2, []uint64{0, 8, 20, 60, 0}, said{20, 40, vBehind, 0}},
		{"staged", 3, 0, []uint64{0, 8, 20, 60, 40}, said{0, 8, vStaged, 40}},
		{"offered", 3, 1, []uint64{0, 8, 20, 60, offeredV}, said{8, 12, vOffered, 0}},
		{"nothing", 3, 1, []uint64{0, 8, 8, 60, 0}, said{8, 0, vBehind, 0}},
	} {
		assert.Len(t, tc.header, headerWords(tc.n), tc.name)
		var got said
		got.at, got.length, got.where, got.largest = readHeader(tc.n, tc.me, tc.header)
		assert.Equal(t, tc.want, got, tc.name)
	}
}

// Headers take at most half of a slot: with more than 126 ranks they do not fit.
func TestSlotsV(t *testing.T) {
	for n, want := range map[int]bool{2: true, 3: true, 8: true, 126: true, 127: false, 1000: false} {
		assert.Equal(t, want, slotsV(n, tuning.Inline(n)), "%d ranks", n)
	}
}

func TestCut(t *testing.T) {
	b := []byte{0, 1, 2, 3, 4}
	for _, tc := range []struct {
		at, length int
		want       []byte
	}{{0, 2, []byte{0, 1}}, {3, 2, []byte{3, 4}}, {3, 9, []byte{3, 4}}, {5, 1, []byte{}}, {9, 1, []byte{}}} {
		assert.Equal(t, tc.want, cut(b, tc.at, tc.length))
	}
}

// Each block comes where it belongs, whatever its length, also in place, and where some ranks' blocks lie in the slot while
// those of others are staged or read.
func TestAllToAllV(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		room := tuning.Inline(n) / 4
		for w, name := range []string{byStage: "staged", byRead: "read", byDirect: "in place"} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, name), func(t *testing.T) {
				all := ranksOf(t, n, way(w))
				for _, largest := range []int{0, 1, room / n, room + 1, tuning.StageChunk(n)/4 + 7} {
					for _, inPlace := range []bool{false, true} {
						// count is of elements that r sends to q: rank 0 sends little, and rank 1 nothing to the last.
						count := func(r, q int) int {
							switch {
							case r == 0:
								return min(largest, 3+q)
							case r == 1 && q == n-1:
								return 0
							}
							return largest / (1 + (r+q)%3)
						}
						atOnce(t, all, func(c *Team) *call.Fault {
							sc, dc, sent, got := make([]int, n), make([]int, n), 0, 0
							for q := range n {
								sc[q], dc[q] = count(c.me, q), count(q, c.me)
								sent, got = sent+sc[q], got+dc[q]
							}
							src := blocks(n, func(q int) []int32 { return vector(c.me, q, sc[q]) })
							want := blocks(n, func(q int) []int32 { return vector(q, c.me, dc[q]) })
							dst := make([]int32, got)
							if inPlace {
								both := make([]int32, max(sent, got))
								copy(both, src)
								src, dst = both[:sent], both[:got]
							}
							k := callOf(call.AllToAllV, -1, 0, dst, src)
							k.DC, k.SC = dc, sc
							f := run(t, c, k)
							same(t, want, dst, "rank %d, up to %d, in place %v", c.me, largest, inPlace)
							return f
						})
					}
				}
			})
		}
	}
}

// An empty block that begins where its sender's vector ends is taken from nowhere. What lies there may not be memory of Go: of
// so many bytes, which fill no page, the race detector's build ends a program that makes a pointer to it.
func TestAllToAllVEndsWithNothing(t *testing.T) {
	const n, count = 3, 13_001
	all := ranksOf(t, n, byDirect)
	atOnce(t, all, func(c *Team) *call.Fault {
		sc, dc := []int{count, count, 0}, []int{count, count, count}
		if c.me == n-1 {
			dc = []int{0, 0, 0}
		}
		src := make([]int32, 2*count)
		copy(src, slices.Concat(vector(c.me, 0, count), vector(c.me, 1, count)))
		want := blocks(n, func(q int) []int32 { return vector(q, c.me, dc[q]) })
		dst := make([]int32, len(want))
		k := callOf(call.AllToAllV, -1, 0, dst, src)
		k.DC, k.SC = dc, sc
		f := run(t, c, k)
		same(t, want, dst, "rank %d", c.me)
		return f
	})
}

// Two ranks that disagree about the length of a block find it.
func TestAllToAllVThatDisagrees(t *testing.T) {
	for _, n := range []int{2, 3} {
		all := ranksOf(t, n, byStage)
		faults := make([]*call.Fault, n)
		atOnce(t, all, func(c *Team) *call.Fault {
			sc, dc := make([]int, n), make([]int, n)
			switch c.me {
			case 0:
				sc[1] = 5
			case 1:
				dc[0] = 6
			}
			k := callOf(call.AllToAllV, -1, 0, make([]int32, dc[0]), make([]int32, sc[1]))
			k.SC, k.DC = sc, dc
			faults[c.me] = run(t, c, k)
			return nil
		})
		if assert.NotNil(t, faults[1]) {
			assert.Equal(t, call.Mismatch, faults[1].Code)
			assert.Equal(t, 0, faults[1].Peer)
		}
	}
}
