package shm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A writer that has claimed a slot and is dead by now is passed over, one that lives is waited for.
func TestRingOfAWriterThatDied(t *testing.T) {
	var l Ring[int]
	add := func(v, writer int) { require.True(t, l.Append(&v, writer, nil)) }
	add(10, 1)
	require.True(t, l.slots[1].stamp.CompareAndSwap(0, stampOf(1, 2, 0))) // 2 is killed after the claim, before it has said so
	add(12, 3)
	require.True(t, l.slots[3].stamp.CompareAndSwap(0, stampOf(3, 2, 0)))
	require.True(t, l.n.CompareAndSwap(3, 4)) // and after that
	add(14, 1)

	var next uint64
	var seen []int
	note := func(v int) { seen = append(seen, v) }
	l.Unread(&next, func(int) bool { return false }, note)
	assert.Equal(t, []int{10}, seen)
	assert.Equal(t, uint64(1), next)
	l.Unread(&next, func(w int) bool { return w == 2 }, note)
	assert.Equal(t, []int{10, 12, 14}, seen)
	assert.Equal(t, uint64(5), next)
}

// Nothing is claimed where there is no room, and it is once there is.
func TestRingWithoutRoom(t *testing.T) {
	var l Ring[int]
	var read uint64
	room := func(i uint64) bool { return i < read+RingSlots }
	for v := range RingSlots {
		require.True(t, l.Append(&v, 0, room))
	}
	v := RingSlots
	require.False(t, l.Append(&v, 0, room))
	require.Equal(t, uint64(RingSlots), l.n.Load())
	first, ok, _ := l.Read(0, nil)
	require.True(t, ok)
	require.Equal(t, 0, first)
	read = 1
	require.True(t, l.Append(&v, 0, room))
	_, ok, gone := l.Read(0, nil)
	require.False(t, ok)
	require.True(t, gone)
}

// A writer is stopped after its claim, given up, and goes on when its slot has another value, at any point of what it still
// writes. That value counts as lost, and none is read that nobody wrote.
func TestRingOfAWriterThatGoesOn(t *testing.T) {
	for _, all := range []bool{true, false} {
		type news struct{ comm, peer uint64 }
		var l Ring[news]
		old, late := news{comm: 7, peer: 1}, news{comm: 9, peer: 2}
		require.True(t, l.slots[0].stamp.CompareAndSwap(0, stampOf(0, 2, 0)))
		require.True(t, l.n.CompareAndSwap(0, 1))
		for range RingSlots {
			require.True(t, l.Append(&old, 1, nil))
		}
		got, ok, _ := l.Read(RingSlots, nil)
		require.True(t, ok)
		require.Equal(t, old, got)
		if all {
			l.fill(&late, 0, 2)
		} else {
			l.slots[0].v.comm = late.comm
		}
		_, ok, gone := l.Read(RingSlots, nil)
		require.False(t, ok)
		require.True(t, gone)
		next, seen := uint64(0), 0
		l.Unread(&next, nil, func(e news) { seen++; require.Equal(t, old, e) })
		require.Equal(t, RingSlots-1, seen)
	}
}

// What has been written is read without allocating.
func TestRingAllocatesNothing(t *testing.T) {
	type news [4]uint64
	var l Ring[news]
	var next, sum uint64
	dead, note := func(int) bool { return false }, func(e news) { sum += e[2] }
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for v := range uint64(3) {
			l.Append(&news{2: v + 1}, 1, nil)
		}
		l.Unread(&next, dead, note)
	}))
	require.Equal(t, uint64(11*(1+2+3)), sum)
}
