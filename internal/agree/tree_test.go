package agree

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// wide is a tree of ranks, each of which has so many others below it.
type wide struct{ ranks, width int }

func (w wide) Above(r int, gone func(int) bool) int {
	for r > 0 {
		if r = (r - 1) / w.width; !gone(r) {
			return r
		}
	}
	return -1
}

func (w wide) Below(r int) (list []int32) {
	for from, to := r*w.width+1, r*w.width+w.width; from < w.ranks; from, to = from*w.width+1, to*w.width+w.width {
		for x := from; x <= min(to, w.ranks-1); x++ {
			list = append(list, int32(x))
		}
	}
	return list
}

// many are the parties of a tree, and how many letters each has sent.
type many struct {
	all  []*Party
	sent []int
	gone func(int) bool
}

func manyOf(w wide, gone func(int) bool) *many {
	m := &many{sent: make([]int, w.ranks), gone: gone}
	for r := range w.ranks {
		m.all = append(m.all, New(r, w.ranks, Asks{Make: func(uint64, []int32) error { return nil }, Tree: w}))
	}
	return m
}

// run delivers letters until there are none.
func (m *many) run() {
	for moved := true; moved; {
		moved = false
		for r, p := range m.all {
			if m.gone(r) {
				continue
			}
			post := p.Post
			p.Post = nil
			for _, l := range post {
				moved = true
				m.sent[r]++
				if q := m.all[l.To]; !m.gone(l.To) && q.Waits(r) {
					q.Hear(r, l.Notice)
				}
			}
		}
	}
}

// All agree through a tree, and none has to send more than to those beside it, whoever is gone.
func TestThroughTree(t *testing.T) {
	const n, width = 500, 4
	for name, gone := range map[string]func(int) bool{
		"nobody is gone":        lost(),
		"the lead":              lost(0),
		"two that others need":  lost(1, 6),
		"one with its children": lost(2, 9, 10, 11, 12),
		"the last":              lost(n - 1),
	} {
		t.Run(name, func(t *testing.T) {
			m := manyOf(wide{n, width}, gone)
			for r, p := range m.all {
				if !gone(r) {
					p.Look(gone)
				}
			}
			m.run()
			for r, p := range m.all {
				if gone(r) {
					continue
				}
				require.Equal(t, Agreed, p.End, "rank %d", r)
				require.Equal(t, m.all[3].Ranks, p.Ranks)
				require.Equal(t, p.Ballot(), p.Made())
				require.LessOrEqual(t, m.sent[r], 4*width*(1+n-len(p.Ranks))+3, "rank %d", r)
			}
		})
	}
}

// A rank in the middle dies at any moment: those below it go on through others, and all agree.
func TestMiddleDies(t *testing.T) {
	const n, width, victim = 40, 3, 2
	for after := range 14 {
		dead := false
		gone := func(r int) bool { return dead && r == victim }
		m := manyOf(wide{n, width}, gone)
		for _, p := range m.all {
			p.Look(gone)
		}
		for step := 0; step < after; step++ { // so many letters of it are sent
			m.step(victim, step)
		}
		dead = true
		for r, p := range m.all {
			if r != victim {
				p.Look(gone)
			}
		}
		m.run()
		for r, p := range m.all {
			if r != victim {
				require.Equal(t, Agreed, p.End, "rank %d, after %d", r, after)
				require.Equal(t, m.all[0].Ranks, p.Ranks)
			}
		}
	}
}

// step delivers what each rank has to say now, but of rank r only the first letters.
func (m *many) step(r, letters int) {
	for o, p := range m.all {
		post := p.Post
		p.Post = nil
		for i, l := range post {
			if q := m.all[l.To]; (o != r || i <= letters) && q.Waits(o) {
				q.Hear(o, l.Notice)
			}
		}
	}
}

// A rank in the middle says up who has come, once, while some lack: so the lead can name these.
func TestReport(t *testing.T) {
	m := manyOf(wide{7, 2}, lost())
	for r, p := range m.all {
		if r != 3 { // which speaks through rank 1, as rank 4 does
			p.Look(lost())
		}
	}
	m.run()
	require.Equal(t, []int{1, 3, 4}, m.all[0].Missing())
	for range 2 {
		m.all[1].Report()
	}
	require.Len(t, m.all[1].Post, 1)
	m.run()
	require.Equal(t, []int{3}, m.all[0].Missing())
	require.Equal(t, []int{3}, m.all[1].Missing())
	require.Equal(t, []int{1}, m.all[4].Missing())
	m.all[3].Look(lost())
	m.run()
	require.Equal(t, Agreed, m.all[0].End)
}

// Who has closed the Comm only those know that speak with it: all others hear of it, those above and those below.
func TestLeft(t *testing.T) {
	for i := range 6 {
		closed, certain := []int{0, 1, 4}[i/2], i%2 == 0
		m := manyOf(wide{7, 2}, lost(closed))
		seen := func(r int) func(int) bool {
			return func(x int) bool { return x == closed && m.all[r].Waits(x) }
		}
		for r, p := range m.all {
			if r != closed {
				p.HasLeft = lost(closed)
				p.HasEnded = func(x int) bool { return certain && x == closed }
				p.Look(lost())
			}
		}
		m.run()
		for r, p := range m.all {
			if r != closed {
				p.Look(seen(r))
			}
		}
		m.run()
		for r, p := range m.all {
			if r != closed {
				require.Equal(t, Agreed, p.End, "rank %d, where %d has closed", r, closed)
				require.Len(t, p.Ranks, 6)
				require.Equal(t, certain, slices.Equal([]int32{int32(closed)}, p.Ended))
				require.Equal(t, !certain, len(p.Ended) == 0)
			}
		}
	}
}

// A rank that leads keeps an answer for each, any other for those that may be below it.
func TestRoom(t *testing.T) {
	w := wide{1000, 10}
	for r, want := range map[int]int{0: 1000, 1: 110, 11: 10, 500: 0} {
		p := New(r, w.ranks, Asks{Tree: w})
		p.Look(lost())
		require.Len(t, p.tree.said, want, "rank %d", r)
	}
	flat := New(1, 1000, none)
	flat.Look(lost())
	require.Empty(t, flat.tree.said)
}
