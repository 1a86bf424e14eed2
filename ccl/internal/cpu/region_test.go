package cpu

import (
	"sort"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Nothing in a region lies on anything else, and what is written by one rank shares
// no cache line with what another writes.
func TestRegionLayout(t *testing.T) {
	for n := range 10 {
		testRegionLayout(t, n)
	}
}

func testRegionLayout(t *testing.T, n int) {
	g := newRegion(0, shm.Aligned(regionBytes(n)), n)
	base := uintptr(unsafe.Pointer(&g.mem[0]))
	type span struct {
		what     string
		rank     int
		from, to uintptr
	}
	var spans []span
	add := func(what string, rank int, p unsafe.Pointer, size int) {
		from := uintptr(p) - base
		spans = append(spans, span{what, rank, from, from + uintptr(size)})
	}
	add("abort", -1, unsafe.Pointer(g.abort()), 8)
	add("left", -2, unsafe.Pointer(g.left()), 8)
	for r := range n {
		add("state", r, unsafe.Pointer(g.state(r)), 8)
		add("stage", r, unsafe.Pointer(g.stage(r)), 8)
		add("row", r, unsafe.Pointer(g.row(r)), 8)
		for seq := range uint64(tuning.CallsKept(n)) {
			add("call", r, unsafe.Pointer(g.call(r, seq)), recordBytes)
		}
		for round := range tuning.SlotDepth(n) {
			add("flag", r, unsafe.Pointer(g.flag(r, round)), 8)
			add("data", r, g.data(r, round), tuning.Inline(n))
			for _, size := range []int{0, 1, tuning.BesideFlag, tuning.BesideFlag + 1, tuning.LineFrom - 1, tuning.LineFrom, tuning.SlotRoom(n)} {
				if from := uintptr(g.payload(r, round, size)); size <= tuning.SlotRoom(n) {
					assert.GreaterOrEqual(t, from, uintptr(g.data(r, round)))
					assert.LessOrEqual(t, from+uintptr(size), uintptr(g.at(g.slotOf(r, round)+g.slot)))
				}
			}
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	for i, s := range spans {
		assert.Zero(t, s.from%8, "%+v", s)
		assert.LessOrEqual(t, s.to, uintptr(len(g.mem)), "%+v", s)
		if i > 0 {
			p := spans[i-1]
			assert.LessOrEqual(t, p.to, s.from, "%+v and %+v", p, s)
			if p.rank != s.rank {
				assert.Less(t, (p.to-1)/64, s.from/64, "%+v and %+v share a line", p, s)
			}
		}
	}
}

// Slots and records are used in turn, also where the round's number goes around.
func TestRegionTurns(t *testing.T) {
	g := newRegion(0, shm.Aligned(regionBytes(2)), 2)
	depth, kept := tuning.SlotDepth(2), uint64(tuning.CallsKept(2))
	assert.Same(t, g.flag(1, 3), g.flag(1, 3+depth))
	assert.NotSame(t, g.flag(1, 3), g.flag(1, 4))
	assert.NotSame(t, g.flag(0, 3), g.flag(1, 3))
	last := ^uint32(0)
	assert.Same(t, g.flag(0, last+1), g.flag(0, last-depth+1))
	assert.Same(t, g.call(1, 2), g.call(1, 2+kept))
	assert.NotSame(t, g.call(1, 2), g.call(1, 3))
}
