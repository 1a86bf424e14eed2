package ccl

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/algo"
)

// What is written is read again.
func TestRoll(t *testing.T) {
	for _, w := range []roll{
		{number: -1, known: []byte{}},
		{number: 0, fresh: true, works: true, shrinks: true, accepted: 7, backend: "cpu", known: []byte{0, 1, 2}},
		{number: 1 << 20, accepted: 1 << 30, backend: "sixteen letters!", known: make([]byte, 100)},
	} {
		b := w.append(nil)
		require.Len(t, b, seatHead+len(w.known))
		require.Equal(t, w, parseRoll(b))
	}
}

// Where a rank has not got the workers' new Comm, as a spare was lost just then, nobody else returns it: they go round again,
// and no call fails for the spare. One that a program has aborted is returned as it is.
func TestCommThatIsNeverWhole(t *testing.T) {
	for _, tc := range []struct {
		why   string
		again bool
	}{{"Split failed: world rank 2: its process ended", true}, {"the program has had enough", false}} {
		var all sync.WaitGroup
		for r, b := range boot.Local(2) {
			all.Go(func() {
				c, err := NewComm(t.Context(), b, nil)
				if !assert.NoError(t, err) {
					return
				}
				defer c.Close()
				if r == 0 { // does not meet
					c.Abort(errors.New(tc.why))
					return
				}
				if f := meetIn(t.Context(), c.eng); assert.Equal(t, tc.again, f != nil, tc.why) && tc.again {
					assert.True(t, goesRound(c, f))
				}
			})
		}
		all.Wait()
	}
}

// mustered is a pool of these ranks of the job, all of which wait, as far as they say.
func mustered(here ...int) *muster {
	m := &muster{here: here}
	for range here {
		m.rolls = append(m.rolls, roll{number: -1, known: make([]byte, 10)})
	}
	return m
}

// Who gets which number. Ranks of the job that are not in here are lost.
func TestSeat(t *testing.T) {
	const w = -1 // waits
	for _, tc := range []struct {
		name    string
		hosts   []int // by rank of the job
		workers int
		here    []int
		numbers []int // of these
		fresh   []int // of these, those that say that they are
		want    seats
	}{
		{"nobody is lost", []int{0, 0, 0, 0, 0}, 4, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, w}, nil, seats{of: []int{0, 1, 2, 3}, waiting: []int{4}}},
		{"one is", []int{0, 0, 0, 0, 0}, 4, []int{0, 1, 3, 4}, []int{0, 1, 3, w}, nil, seats{of: []int{0, 1, 4, 3}, fresh: []int{2}}},
		{"the lowest spare first", []int{0, 0, 0, 0}, 2, []int{1, 2, 3}, []int{1, w, w}, nil, seats{of: []int{2, 1}, fresh: []int{0}, waiting: []int{3}}},
		{"a spare of the same host", []int{0, 0, 1, 1, 0, 1}, 4, []int{0, 1, 3, 4, 5}, []int{0, 1, 3, w, w}, nil, seats{of: []int{0, 1, 5, 3}, fresh: []int{2}, waiting: []int{4}}},
		{"too few, though one has a spare at home", []int{0, 1, 2, 1}, 3, []int{2, 3}, []int{2, w}, nil, seats{of: []int{-1, -1, 2}, waiting: []int{3}, missing: []int{0, 1}}},
		{"the host with most spares", []int{0, 1, 1, 2, 2}, 2, []int{1, 2, 3, 4}, []int{1, w, w, w}, nil, seats{of: []int{3, 1}, fresh: []int{0}, waiting: []int{2, 4}}},
		{"of equals the lowest host", []int{0, 1, 2, 1}, 2, []int{1, 2, 3}, []int{1, w, w}, nil, seats{of: []int{3, 1}, fresh: []int{0}, waiting: []int{2}}},
		{"those with a spare at home first", []int{0, 1, 1, 0, 1}, 2, []int{2, 3, 4}, []int{w, w, w}, nil, seats{of: []int{3, 2}, fresh: []int{0, 1}, waiting: []int{4}}},
		{"another host, where its own has none", []int{0, 1, 1, 0}, 2, []int{0, 3}, []int{0, w}, nil, seats{of: []int{0, 3}, fresh: []int{1}}},
		{"one that is fresh still", []int{0, 0, 0, 0}, 2, []int{0, 2, 3}, []int{0, 1, w}, []int{2}, seats{of: []int{0, 2}, fresh: []int{1}, waiting: []int{3}}},
		{"too few", []int{0, 0, 0, 0}, 3, []int{0, 3}, []int{0, w}, nil, seats{of: []int{0, -1, -1}, waiting: []int{3}, missing: []int{1, 2}}},
		{"none is left", []int{0, 0, 0}, 2, []int{0}, []int{0}, nil, seats{of: []int{0, -1}, missing: []int{1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := mustered(tc.here...)
			for i, n := range tc.numbers {
				m.rolls[i].number = n
				for _, r := range tc.fresh {
					m.rolls[i].fresh = m.rolls[i].fresh || r == tc.here[i]
				}
			}
			got, err := m.seat(tc.workers, algo.Placed(tc.hosts))
			require.NoError(t, err)
			if len(got.waiting) == 0 {
				got.waiting = nil
			}
			require.Equal(t, tc.want, got)
		})
	}
	m := mustered(0, 1)
	m.rolls[0].number, m.rolls[1].number = 1, 1
	_, err := m.seat(2, algo.Flat(3))
	require.EqualError(t, err, "rank 1 of the job says that it is number 1 of 2, which another is as well")
	m.rolls[1].number = 2
	_, err = m.seat(2, algo.Flat(3))
	require.ErrorContains(t, err, "rank 1 of the job says that it is number 2 of 2")
}

// How it comes out. Of 3 workers and 2 spares, in the numbering of the job; the last generation that had a majority was of all five.
func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name  string
		here  []int
		works []int // of these
		ended []int // for certain
		lost  []int // as anybody knows
		out   outcome
		text  string
	}{
		{"all are there", []int{0, 1, 2, 3, 4}, []int{0, 1, 2}, nil, nil, seated, ""},
		{"one has ended", []int{0, 2, 3, 4}, []int{0, 2}, []int{1}, []int{1}, seated, ""},
		{"more than there are spares", []int{0, 4}, []int{0}, []int{1, 2, 3}, []int{1, 2, 3}, tooFew, "spares left: 1, ranks lost: 2; Shrink goes on without them"},
		{"a side of two", []int{0, 1}, []int{0, 1}, nil, []int{2, 3, 4}, minority, "this side of a partition has 2 of 5 ranks of the job, spares included, and is not to go on: the others may"},
		{"the other side", []int{2, 3, 4}, []int{2}, nil, []int{0, 1}, seated, ""},
		{"all workers have closed", []int{3, 4}, nil, []int{0, 1, 2}, nil, over, "no rank works any more"},
		{"one of them has, the others were killed", []int{3, 4}, nil, []int{0, 1, 2}, []int{0, 1}, over, "no rank works any more"},
		{"one of them has, the others cannot be reached", []int{4}, nil, []int{2}, []int{0, 1, 3}, over, "no rank works any more"},
		{"all were killed", []int{3, 4}, nil, []int{0, 1, 2}, []int{0, 1, 2}, deserted, "all ranks that worked are lost; spares left: 2, ranks lost: 3"},
		{"all are out of reach", []int{3, 4}, nil, nil, []int{0, 1, 2}, minority, "rank 0 of the job may go on, with all that work"},
		{"one is out of reach, the others were killed", []int{3, 4}, nil, []int{0, 2}, []int{0, 1, 2}, minority, "rank 1 of the job may go on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &reserve{workers: 3, opt: settings{Options: Options{Spares: 2}}, seats: seats{of: []int{0, 1, 2}}}
			r.past.begin([]int{0, 1, 2, 3, 4})
			r.past.add(tc.here, tc.ended)
			m := mustered(tc.here...)
			for w := range 3 {
				m.rolls[0].known[w] |= hadNumber
			}
			for i, w := range tc.here {
				if slices.Contains(tc.works, w) {
					m.rolls[i].number, m.rolls[i].works = w, true
				}
			}
			for _, w := range tc.lost {
				m.rolls[len(tc.here)-1].known[w] |= isLost
			}
			s, err := m.seat(3, algo.Flat(5))
			require.NoError(t, err)
			out, f := r.judge(m, &s)
			require.Equal(t, tc.out, out)
			if tc.text == "" {
				require.Nil(t, f)
				require.Equal(t, 1, r.past.accepted)
				require.NotContains(t, r.past.members, 0, "what nobody will ask for")
				return
			}
			require.ErrorContains(t, f, tc.text)
			require.Equal(t, out == tooFew || out == deserted, r.past.accepted == 1)
		})
	}
}

// Spares that are the majority of the job, and reach no rank that works, do not begin anew beside those.
func TestSparesAlone(t *testing.T) {
	for _, ended := range [][]int{nil, {0}, {0, 1}} {
		r := &reserve{workers: 2, opt: settings{Options: Options{Spares: 3}}, seats: seats{of: []int{0, 1}}}
		r.past.begin([]int{0, 1, 2, 3, 4})
		r.past.add([]int{2, 3, 4}, ended)
		m := mustered(2, 3, 4)
		for w := range 2 {
			m.rolls[1].known[w] = hadNumber | isLost
		}
		s, err := m.seat(2, algo.Flat(5))
		require.NoError(t, err)
		out, f := r.judge(m, &s)
		if len(ended) == 2 {
			require.Equal(t, seated, out)
			require.Nil(t, f)
			continue
		}
		require.Equal(t, minority, out)
		require.ErrorContains(t, f, "only spares are here")
	}
}

// Ranks that work call the same; those that wait do not count.
func TestShrinkOrReplace(t *testing.T) {
	for _, tc := range []struct {
		calls string // by rank: s for Shrink, r for Replace, - for a rank that waits
		is    bool
		odd   int
	}{
		{"rrr-", false, -1}, {"sss-", true, -1}, {"-ss", true, -1}, {"rsr-", false, 1}, {"-srs", true, 2}, {"--", false, -1},
	} {
		m := &muster{}
		for r, what := range tc.calls {
			m.here = append(m.here, r)
			m.rolls = append(m.rolls, roll{number: r, works: what != '-', shrinks: what == 's'})
		}
		is, odd := m.shrink()
		require.Equal(t, tc.is, is, tc.calls)
		require.Equal(t, tc.odd, odd, tc.calls)
	}
}
