package region

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
	g := New(0, shm.Aligned(Bytes(n)), n)
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
	add("abort", -1, unsafe.Pointer(g.Abort()), 8)
	add("left", -2, unsafe.Pointer(g.Left()), 8)
	add("sleepers", -3, unsafe.Pointer(g.Sleepers()), 8)
	add("crowding", -4, unsafe.Pointer(g.Crowding()), 8)
	add("leaving", -5, unsafe.Pointer(g.Leaving()), 8)
	for r := range n {
		add("state", r, unsafe.Pointer(g.State(r)), 8)
		add("stage", r, unsafe.Pointer(g.Stage(r)), 8)
		add("sent", r, unsafe.Pointer(g.Sent(r)), 8)
		add("bell", r, unsafe.Pointer(g.Bell(r)), 8)
		add("core", r, unsafe.Pointer(g.Core(r)), 8)
		add("wanted", r, unsafe.Pointer(g.Wanted(r)), 8)
		add("request", r, unsafe.Pointer(g.Request(r)), 8)
		add("draft", r, unsafe.Pointer(g.word(regionHead+r*g.rank+draftAt)), 24)
		add("rests", r, unsafe.Pointer(g.Rests(r)), 8)
		add("row", r, unsafe.Pointer(g.Row(r)), 8)
		add("out", r, unsafe.Pointer(g.Out(r)), 8)
		for seq := range uint64(tuning.CallsKept(n)) {
			add("call", r, unsafe.Pointer(g.Call(r, seq)), recordBytes)
		}
		for round := range tuning.SlotDepth(n) {
			add("flag", r, unsafe.Pointer(g.Flag(r, round)), 8)
			if n != 2 {
				add("data", r, g.Data(r, round), tuning.BesideFlag)
				continue
			}
			add("data", r, g.Data(r, round), tuning.Inline(n))
			for _, size := range []int{0, 1, tuning.BesideFlag, tuning.BesideFlag + 1, tuning.LineFrom - 1, tuning.LineFrom, tuning.SlotRoom(n)} {
				from := uintptr(g.Payload(r, round, size))
				assert.GreaterOrEqual(t, from, uintptr(g.Data(r, round)))
				assert.LessOrEqual(t, from+uintptr(size), uintptr(g.slotOf(r, round))+uintptr(g.slot))
			}
		}
		if n > 2 {
			g.Place(r, 0, 0)
			add("ring", r, g.Placed(r, 0), tuning.RingSegments(n)*tuning.SlotRoom(n))
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
	g := New(0, shm.Aligned(Bytes(2)), 2)
	depth, kept := tuning.SlotDepth(2), uint64(tuning.CallsKept(2))
	assert.Same(t, g.Flag(1, 3), g.Flag(1, 3+depth))
	assert.NotSame(t, g.Flag(1, 3), g.Flag(1, 4))
	assert.NotSame(t, g.Flag(0, 3), g.Flag(1, 3))
	last := ^uint32(0)
	flags, records := g.Flags(1), g.Records(1)
	for _, i := range []uint32{0, 3, depth - 1, depth, 3 * depth, last} {
		assert.Same(t, g.Flag(1, i), flags.At(i), "%d", i)
		assert.Same(t, g.Call(1, uint64(i)), &records[uint64(i)&uint64(kept-1)], "%d", i)
		assert.Same(t, g.Call(1, 1<<32+uint64(i)), &records[(1<<32+uint64(i))&uint64(kept-1)], "%d", i)
	}
	assert.Same(t, g.Flag(0, last+1), g.Flag(0, last-depth+1))
	assert.Same(t, g.Call(1, 2), g.Call(1, 2+kept))
	assert.NotSame(t, g.Call(1, 2), g.Call(1, 3))
}

// With more than two ranks, data that do not fit beside the flag lie where the line of the flag says, for all ranks alike.
func TestPlaced(t *testing.T) {
	mem := shm.Aligned(Bytes(3))
	mine, theirs := New(0, mem, 3), New(0, mem, 3)
	mine.Place(1, 7, 0)
	mine.Place(1, 8, 4096)
	small, large := tuning.BesideFlag, tuning.BesideFlag+1
	assert.Equal(t, mine.Data(1, 7), theirs.Payload(1, 7, small))
	assert.Equal(t, mine.Placed(1, 7), theirs.Payload(1, 7, large))
	assert.Equal(t, unsafe.Add(mine.Placed(1, 7), 4096), theirs.Payload(1, 8, large))
	assert.NotEqual(t, mine.Placed(1, 7), theirs.Placed(2, 7))
}

// What a slot has behind its flag's line is enough for every payload that goes there.
func TestPayloadsFit(t *testing.T) {
	for bytes := 1; bytes <= tuning.SlotRoom(2); bytes++ {
		assert.LessOrEqual(t, BehindFlag(bytes)+bytes, 64+tuning.SlotRoom(2), "%d bytes", bytes)
	}
	for _, tc := range []struct{ bytes, at int }{{1, 8}, {tuning.BesideFlag, 8}, {tuning.BesideFlag + 1, 32}, {tuning.LineFrom - 1, 32}, {tuning.LineFrom, 64}} {
		assert.Equal(t, tc.at, BehindFlag(tc.bytes), "%d bytes", tc.bytes)
	}
}

// A draft is read as it was written, by all, and not at all while it changes.
func TestDraft(t *testing.T) {
	mem := shm.Aligned(Bytes(3))
	mine, theirs := New(0, mem, 3), New(0, mem, 3)
	assert.Zero(t, theirs.Draft(1))
	d := Draft{Attempt: 2, Ballot: 1<<32 | 5, Off: 1 << 40}
	mine.SetDraft(1, d)
	assert.Equal(t, d, theirs.Draft(1))
	assert.Zero(t, theirs.Draft(0))
	assert.Zero(t, theirs.Draft(2))
	mine.SetDraft(1, Draft{})
	assert.Zero(t, theirs.Draft(1))
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint32(1); ; i++ { // the same ballot in each attempt
			select {
			case <-stop:
				return
			default:
				mine.SetDraft(1, Draft{Attempt: i, Ballot: 1 << 32, Off: uint64(i)})
			}
		}
	}()
	for seen := 0; seen < 1000; {
		if d := theirs.Draft(1); d.Ballot != 0 {
			assert.Equal(t, uint64(d.Attempt), d.Off)
			seen++
		}
	}
	close(stop)
	<-done
}
