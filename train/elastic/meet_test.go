package elastic

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/internal/quorum"
)

// memberOn is a rank of c with that state and record.
func memberOn(t testing.TB, c *ccl.Comm, state []ccl.Buf, r record) *member {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := newMember(&Job{State: state, Share: func(context.Context, *Round) error { return nil }, Options: &ccl.Options{Log: quiet}})
	require.NoError(t, err)
	r.id = int64(c.Rank() + 1)
	m.c, m.behind.running = c, t.Context()
	if m.become(r); !r.late {
		m.vote = quorum.Founder(r.id, c.Size())
	}
	return m
}

// All come to the state of the furthest, whatever shape it has; that of one rank is sent by all that have it.
func TestMeet(t *testing.T) {
	const n = 1000
	for _, tc := range []struct {
		name   string
		states []float32 // by rank: what the state is full of
		record []record
		want   float32
		round  int64
	}{
		{"the first ranks of a job", []float32{1, 2, 3, 4}, make([]record, 4), 1, 0},
		{"two newcomers", []float32{5, 5, 0, 1}, []record{{in: true, round: 7}, {in: true, round: 7}, {late: true}, {late: true, round: 9}}, 5, 7},
		{"one is behind", []float32{5, 4, 5, 5}, []record{{in: true, round: 7}, {in: true, round: 6}, {in: true, round: 7}, {in: true, round: 7}}, 5, 7},
		{"one is damaged", []float32{4, 5, 5, 5}, []record{{in: true, round: 7}, {in: true, round: 7}, {in: true, round: 7}, {in: true, round: 7}}, 5, 7},
		{"all have the same", []float32{5, 5, 5, 5}, []record{{in: true, round: 7}, {in: true, round: 7}, {late: true}, {late: true}}, 5, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				a, b, empty := make([]float32, n), make([]int8, 3), []float64{}
				for i := range a {
					a[i] = tc.states[c.Rank()]
				}
				b[2] = int8(tc.states[c.Rank()])
				m := memberOn(t, c, []ccl.Buf{ccl.BufOf(a), ccl.BufOf(empty), ccl.BufOf(b)}, tc.record[c.Rank()])
				require.NoError(t, m.meet(t.Context(), nil))
				for i := range a {
					require.Equal(t, tc.want, a[i], "element %d", i)
				}
				require.Equal(t, int8(tc.want), b[2])
				require.True(t, m.record.in)
				require.Equal(t, tc.round, m.record.round)
			}, ccltest.Hosts(4))
		})
	}
}

// What a rank sends that says it has the state and has not is found by its hash, and all comes from another.
func TestMeetWrongBits(t *testing.T) {
	for liar := range 3 {
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			a := make([]float32, 1000)
			r := record{in: true, round: 7}
			for i := range a {
				a[i] = 5
			}
			if c.Rank() == 3 {
				r = record{late: true}
				clear(a)
			}
			m := memberOn(t, c, []ccl.Buf{ccl.BufOf(a)}, r)
			v, err := m.gather(t.Context())
			require.NoError(t, err)
			require.Equal(t, []int{3}, v.need)
			if c.Rank() == liar { // after it has given its hash
				for i := range a {
					a[i] = 6
				}
			}
			require.NoError(t, m.settle(t.Context(), v, nil))
			if c.Rank() == 3 {
				for i := range a {
					require.Equal(t, float32(5), a[i], "element %d", i)
				}
			}
		})
	}
}

// blank is a store that knows nothing.
type blank struct{ boot.Store }

func (blank) Add(context.Context, string, int64) (int64, error) { return 0, nil }

// Ranks that have got the state have it, with its round, though the rank that sent it is lost before
// all have said so. If they are newcomers they go on where that has certainly ended, and else have no
// vote.
func TestMeetLosesTheSource(t *testing.T) {
	for _, tc := range []struct {
		old     record
		call    int // at which rank 0 is lost: the AllReduce behind the sends
		certain bool
		want    error
	}{
		{record{in: true, round: 6, begun: true}, 2, false, nil},
		{record{late: true}, 4, true, nil},
		{record{late: true}, 4, false, errCutOff},
	} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			a, r := []float32{4}, tc.old
			if c.Rank() == 0 {
				a[0], r = 5, record{in: true, round: 7}
			}
			m := memberOn(t, c, []ccl.Buf{ccl.BufOf(a)}, r)
			if m.opt.Store = (blank{}); c.Rank() == 0 && tc.old.late {
				m.vote = quorum.Founder(1, 1)
			}
			require.ErrorIs(t, m.meet(t.Context(), nil), ccl.ErrRankLost)
			if tc.certain {
				m.noteEnd(&ccl.Error{Peer: 0, Certain: true})
			}
			next, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer next.Close()
			m.c = next
			require.ErrorIs(t, m.meet(t.Context(), nil), tc.want)
			require.Equal(t, float32(5), a[0])
			require.EqualValues(t, 7, m.record.round)
			require.False(t, m.record.begun)
		}, ccltest.VirtualTime(), ccltest.Stall(0, tc.call, time.Second), ccltest.Kill(0, tc.call)) // once the others wait there
	}
}

// A rank with a state of another size, and newcomers that are left alone, hear what is wrong.
func TestMeetRefuses(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m := memberOn(t, c, []ccl.Buf{ccl.BufOf(make([]float32, 4+c.Rank()/2))}, record{in: true})
		err := m.meet(t.Context(), nil)
		if c.Rank() == 2 {
			require.ErrorContains(t, err, "the state of this rank has 20 bytes, and that of the job 16")
			return
		}
		require.ErrorIs(t, err, ccl.ErrClosed)
		m.c, err = c.Shrink(t.Context())
		require.NoError(t, err)
		defer m.c.Close()
		require.NoError(t, m.meet(t.Context(), nil))
	})
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := memberOn(t, c, nil, record{late: true})
		require.ErrorIs(t, m.meet(t.Context(), nil), errCutOff, "those that have it may be alive")
		m.vote.Learn(5, []int64{8})
		m.vote.Ended(8)
		require.ErrorContains(t, m.meet(t.Context(), nil), "all ranks that had the state are lost")
	})
}

// An error of Local ends Run, also where the Comm fails at that moment: there is nothing to share.
func TestLocalFailsBesideTheComm(t *testing.T) {
	wrong := errors.New("there are no data")
	for range 30 {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			m := memberOn(t, c, []ccl.Buf{ccl.BufOf(make([]float32, 1))}, record{})
			m.job.Rounds = 1
			m.job.Local = func(context.Context, int) error {
				m.c.Abort(assert.AnError)
				return wrong
			}
			shared := false
			m.job.Share = func(context.Context, *Round) error { shared = true; return nil }
			require.ErrorIs(t, m.train(t.Context()), wrong)
			require.False(t, shared)
			m.c.Close()
			m.behind.Wait()
		})
	}
}
