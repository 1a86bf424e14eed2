package mirror

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// turned is a Mirror in the ring 0, 1, 2 that has step 5, and that of another ring, where each rank
// held the state of the next one. before is what the other slot has of its own: -1 for nothing.
func turned(c *ccl.Comm, before int) *Mirror {
	m := New(nil)
	m.rank, m.size, m.order = c.Rank(), c.Size(), []int{0, 1, 2}
	state := func(step, owner int) part { return part{step, owner, []byte{byte(step), byte(owner)}} }
	m.slots[0].own, m.slots[0].held = state(5, m.rank), state(5, (m.rank+1)%3)
	if before >= 0 {
		m.slots[1].own, m.slots[1].held = state(before, m.rank), state(before, (m.rank+1)%3)
	}
	return m
}

// holds reports whether m holds the state of a rank in a step.
func (m *Mirror) holds(step, owner int) bool {
	p := m.find(source{rank: m.rank, held: true, owner: owner}, step)
	return p != nil && string(p.data) == string([]byte{byte(step), byte(owner)})
}

// When ranks are mirrored anew in another ring, what was held in the one before stays until all have
// their new holder; and what came before a loss is kept where it belongs.
func TestRingTurns(t *testing.T) {
	broken := errors.New("broken off")
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		old, now := (c.Rank()+1)%3, (c.Rank()+2)%3
		for _, again := range []bool{false, true} { // again: the first swap ends before the Barrier
			m := turned(c, -1)
			m.at = func(_, _ int, point string) {
				if point == "whole" {
					return
				}
				if !m.holds(5, old) {
					t.Errorf("at %s rank %d is held no more, and may be nowhere else", point, old)
				}
				if again && point == "received" {
					again = false
					panic(broken)
				}
			}
			ring := ccltest.Split(t, c, 0, c.Rank())
			swap := func(send bool) error { return m.swap(ring, &m.slots[0], &m.slots[1], send) }
			send := !again
			if again {
				require.PanicsWithValue(t, broken, func() { swap(true) })
				require.True(t, m.holds(5, old) && m.holds(5, now) && !m.slots[0].whole, "broken off: %+v", m.slots)
			}
			require.NoError(t, swap(send))
			s := m.slots[0]
			require.True(t, s.whole && s.held.step == 5 && s.held.owner == now && m.holds(5, now) && m.slots[1].held.step < 0, "whole: %+v", m.slots)
		}
	}, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))
}

// A step before that one is what a loss goes back to: it stays.
func TestRingTurnsBesideAStep(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		old, now := (c.Rank()+1)%3, (c.Rank()+2)%3
		m := turned(c, 4)
		require.NoError(t, m.swap(c, &m.slots[0], &m.slots[1], true))
		require.True(t, m.holds(5, now) && m.holds(4, old) && m.slots[1].own.step == 4, "%+v", m.slots)
	})
}

// A rank that has waited for its exchange, and goes back at once, does not disturb those that have not returned from theirs yet.
func TestRestoreAfterWait(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m, state := New(nil), []int{c.Rank()}
		defer func() { m.Close() }()
		_, err := m.Restore(t.Context(), c, nil, ccl.BufOf(state))
		require.NoError(t, err)
		for step := range rounds {
			state[0] = 10*step + c.Rank()
			require.NoError(t, m.Save(t.Context(), step, ccl.BufOf(state)))
			require.NoError(t, m.Wait(t.Context()))
			at, err := m.Restore(t.Context(), c, nil, ccl.BufOf(state))
			require.NoError(t, err)
			require.Equal(t, []int{step, 10*step + c.Rank()}, []int{at, state[0]})
		}
	})
}
