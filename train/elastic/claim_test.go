package elastic

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/internal/quorum"
)

// hallOf is a hall until the test ends.
func hallOf(t *testing.T) *boot.Hall {
	t.Helper()
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	t.Cleanup(func() { hall.Close() })
	return hall
}

// Ranks 0, 1 and 2 of a job are in two Comms from now on: 0 alone, and the others. These go on, though
// the store does not answer them before they have; rank 0 hears that at last, in whatever order they
// ask. No time matters but that of the test.
func TestAgree(t *testing.T) {
	for _, order := range []string{"the isolated rank first", "the majority first", "at once"} {
		t.Run(order, func(t *testing.T) {
			hall, err := boot.ListenHall("127.0.0.1:0", nil)
			require.NoError(t, err)
			addr := hall.Addr()
			defer func() { hall.Close() }()
			went, asked := make(chan bool, 2), make(chan bool)
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := memberOn(t, c, nil, record{in: true})
				var err error
				m.opt.Store, err = boot.DialHall(addr, nil)
				require.NoError(t, err)
				require.NoError(t, m.meet(t.Context(), nil)) // all are of an epoch
				epoch := m.vote.Epoch()
				side, err := c.Split(t.Context(), min(c.Rank(), 1), 0)
				require.NoError(t, err)
				defer side.Close()
				defer m.behind.Wait()
				m.c = side
				_, err = m.gather(t.Context())
				require.NoError(t, err)
				if c.Rank() > 0 {
					if order == "the isolated rank first" {
						<-asked
					}
					require.NoError(t, m.agree(t.Context()))
					require.NotEqual(t, epoch, m.vote.Epoch())
					went <- true
					return
				}
				switch order {
				case "the isolated rank first":
					heard, err := m.vote.Ask(t.Context(), m.opt.Store, m.said(), true)
					require.NoError(t, err)
					require.False(t, heard)
					close(asked)
				case "the majority first":
					<-went
					<-went
				}
				require.ErrorIs(t, m.agree(t.Context()), errCutOff)
			})
		})
	}
}

// Two newcomers and the one rank that has the state fall apart, before they have got it and after.
// They are most of the ranks, and have no vote: they come back as newcomers, and the rank that has the
// state goes on without a store.
func TestGuestsHaveNoVote(t *testing.T) {
	for _, settled := range []bool{false, true} {
		hall := hallOf(t)
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			a := []float32{5}
			m := memberOn(t, c, []ccl.Buf{ccl.BufOf(a)}, record{in: c.Rank() == 0, late: c.Rank() > 0, round: 7})
			if c.Rank() == 0 {
				m.vote = quorum.Founder(1, 1)
			} else {
				a[0], m.opt.Store = 0, hall
			}
			v, err := m.gather(t.Context())
			require.NoError(t, err)
			require.NoError(t, m.known(t.Context()))
			if settled {
				require.NoError(t, m.settle(t.Context(), v, nil))
			}
			side, err := c.Split(t.Context(), min(c.Rank(), 1), 0)
			require.NoError(t, err)
			defer side.Close()
			m.c = side
			err = m.meet(t.Context(), nil)
			if c.Rank() > 0 {
				require.ErrorIs(t, err, errCutOff)
				return
			}
			require.NoError(t, err)
			require.NotEqual(t, int64(1), m.vote.Epoch())
			require.EqualValues(t, 7, m.record.round)
		})
	}
}

// dark is a store that cannot be reached.
type dark struct{ boot.Store }

func (dark) Add(context.Context, string, int64) (int64, error) {
	return 0, errors.New("the store is dark")
}

// Most of the ranks cannot reach the store, and the others can, and ask it again and again: most of
// the ranks go on.
func TestStoreIsDarkForMost(t *testing.T) {
	hall := hallOf(t)
	ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) {
		m := memberOn(t, c, nil, record{in: true})
		running, end := context.WithCancel(t.Context())
		defer m.behind.Wait()
		defer end()
		m.behind.running, m.opt.Store = running, dark{hall}
		require.NoError(t, m.meet(t.Context(), nil))
		side, err := c.Split(t.Context(), c.Rank()%2, 0)
		require.NoError(t, err)
		defer side.Close()
		if m.c = side; c.Rank()%2 == 0 {
			require.NoError(t, m.meet(t.Context(), nil))
			ccltest.Barrier(t, c)
			return
		}
		m.opt.Store = hall
		for range 3 {
			_, err := m.gather(t.Context())
			require.NoError(t, err)
			others, err := m.vote.Ask(t.Context(), hall, m.said(), side.Rank() == 0)
			require.NoError(t, err)
			require.False(t, others)
			require.False(t, m.vote.May(m.side()))
		}
		ccltest.Barrier(t, c)
	})
}

// A rank that was cut off when the job ended hears that, though nobody could tell the store that the
// others went on.
func TestWaitsForAJobThatHasEnded(t *testing.T) {
	hall := hallOf(t)
	_, err := hall.Add(t.Context(), "goccl/begun", 1) // which package lobby knows
	require.NoError(t, err)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := memberOn(t, c, nil, record{in: true})
		require.NoError(t, m.meet(t.Context(), nil))
		side, err := c.Split(t.Context(), c.Rank(), 0)
		require.NoError(t, err)
		defer side.Close()
		m.c = side
		if m.opt.Store = hall; c.Rank() == 0 { // the first of two
			require.NoError(t, m.end(t.Context()))
			return
		}
		require.ErrorIs(t, m.meet(t.Context(), nil), errCutOff)
		require.ErrorIs(t, m.join(t.Context()), ErrEnded)
	})
}

// Rank 0 is lost between the end of all and its word to the store: the others tell it.
func TestRankZeroIsLostAtTheEnd(t *testing.T) {
	hall := hallOf(t)
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m := memberOn(t, c, nil, record{in: true})
		if c.Rank() > 0 { // rank 0 dies before it has said it
			m.opt.Store = hall
		}
		require.NoError(t, m.end(t.Context()))
		if c.Rank() > 0 {
			_, err := hall.Get(t.Context(), overKey)
			require.NoError(t, err)
		}
	}, ccltest.Stall(0, 2, 50*time.Millisecond), ccltest.Kill(0, 2))
}

// away is a store that cannot be reached a few times.
type away struct {
	boot.Store
	times *int
}

func (a away) Add(ctx context.Context, key string, n int64) (int64, error) {
	if *a.times--; *a.times >= 0 {
		return 0, &boot.Error{Code: boot.Lost, Text: "the hall cannot be reached"}
	}
	return a.Store.Add(ctx, key, n)
}

// A rank that comes back to a hall which is away asks it until it is there; a process that has never
// been in the job hears so.
func TestComesBackToADarkHall(t *testing.T) {
	for _, back := range []bool{false, true} {
		hall := hallOf(t)
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			m, times := memberOn(t, c, nil, record{}), 3
			m.opt.Store, m.back = away{hall, &times}, back
			err := m.join(t.Context())
			if !back {
				require.ErrorContains(t, err, "the hall cannot be reached")
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1, m.c.Size())
			m.c.Close()
		})
	}
}

// restarted is a store that is away for the first who asks whether the job is over.
type restarted struct {
	boot.Store
	asked *atomic.Int32
}

func (s restarted) Get(ctx context.Context, key string) ([]byte, error) {
	if key == overKey && s.asked.Add(1) == 1 {
		return nil, &boot.Error{Code: boot.Lost, Rank: -1, Peer: -1, Text: "the hall is started again"}
	}
	return s.Store.Get(ctx, key)
}

// A newcomer whose store was away for a while hears all the same that the job has ended.
func TestHearsTheEndAfterTheStoreWasAway(t *testing.T) {
	hall := hallOf(t)
	_, err := hall.Add(t.Context(), "goccl/begun", 1) // so this process comes late
	require.NoError(t, err)
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		asked := new(atomic.Int32)
		m := memberOn(t, c, nil, record{})
		m.opt.Store, m.back = restarted{hall, asked}, true
		go func() {
			for asked.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			assert.NoError(t, hall.Set(t.Context(), overKey, nil))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.ErrorIs(t, m.join(ctx), ErrEnded)
	})
}
