package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// healed is the loop of a job with spares: steps that all have an exact sum, whoever is lost on the way. It returns the last Comm, and
// how many replacements this rank has seen.
func healed(ctx context.Context, t testing.TB, c *ccl.Comm, steps int, do trouble) (*ccl.Comm, int) {
	t.Helper()
	n, number, first := c.Size(), c.Rank(), c
	t.Cleanup(func() { c.Close() })
	for step, rounds := 0, 0; ; rounds++ {
		err := restored(ctx, c, &step)
		for err == nil && step < steps {
			do.before(c, step)
			x := []int{(number + 1) * (step + 1)}
			if err = ccl.AllReduce(ctx, c, x, x, ccl.Sum); err == nil {
				require.Equal(t, (step+1)*n*(n+1)/2, x[0], "step %d on rank %d", step, number)
				step++
			}
		}
		if err == nil {
			return c, rounds
		}
		require.ErrorIs(t, err, ccl.ErrRankLost)
		do.replacing()
		next, err := c.Replace(ctx)
		if do.failed(err) {
			return c, rounds
		}
		require.NoError(t, err)
		if c != first {
			c.Close()
		}
		c = next // the Cleanup closes it
		require.Equal(t, n, c.Size())
		require.Equal(t, number, c.Rank())
	}
}

// trouble is what happens to a rank in healed. Each function may be nil.
type trouble struct {
	step    func(c *ccl.Comm, step int) // before a step
	replace func()                      // before Replace
	ends    func(err error) bool        // Replace has failed: true if that is to be the end
}

func (d trouble) before(c *ccl.Comm, step int) {
	if d.step != nil {
		d.step(c, step)
	}
}

func (d trouble) replacing() {
	if d.replace != nil {
		d.replace()
	}
}

func (d trouble) failed(err error) bool { return err != nil && d.ends != nil && d.ends(err) }

// restored brings all ranks to the step of the one that is furthest. Whoever is fresh has none of its own.
func restored(ctx context.Context, c *ccl.Comm, step *int) error {
	at := []int{*step}
	for _, r := range c.Fresh() {
		if r == c.Rank() {
			at[0] = 0
		}
	}
	if err := ccl.AllReduce(ctx, c, at, at, ccl.Max); err != nil {
		return err
	}
	*step = at[0]
	c.Restored()
	return nil
}

// The calls of a rank that is in healed from the start, as ccltest.Kill counts them.
const (
	callsOfSeat  = 5               // that give out numbers and make the workers' Comm
	callsOfSpare = 4               // the same of a rank that waits
	firstStep    = callsOfSeat + 2 // after the one of restored
	callsOfAgain = callsOfSeat + 1 // of a replacement, with restored
)

// A rank is killed at each call that it makes: as the job begins, in restored, in a step. The others are whole again, and go on.
func TestReplaceAtEachCall(t *testing.T) {
	for _, victim := range []int{0, 2, 3} {
		for nth := 1; nth <= firstStep+2; nth++ {
			t.Run(fmt.Sprintf("rank %d, call %d", victim, nth), func(t *testing.T) {
				heal(t, 3, 1, ccltest.Kill(victim, nth))
			})
		}
	}
}

// heal runs healed on n ranks and spares, in virtual time.
func heal(t *testing.T, n, spares int, opts ...ccltest.Option) {
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		healed(t.Context(), t, c, 6, trouble{})
	}, append(opts, ccltest.Spares(spares), ccltest.VirtualTime(), ccltest.Deadline(10*time.Minute), ccltest.With(ccl.Options{Timeout: time.Minute}))...)
}

// While rank 2 is replaced a second rank is killed, at each call of the replacement: a worker, the first of all, the spare that comes,
// the one that waits.
func TestReplaceAgainAtEachCall(t *testing.T) {
	const at = firstStep + 1 // rank 2's last call
	for _, tc := range []struct {
		victim int
		after  int // calls that it has made before the replacement
	}{{0, at}, {3, at}, {4, callsOfSpare}, {5, callsOfSpare}} {
		for nth := tc.after + 1; nth <= tc.after+callsOfAgain+1; nth++ {
			t.Run(fmt.Sprintf("rank %d, call %d", tc.victim, nth), func(t *testing.T) {
				heal(t, 4, 2, ccltest.Kill(2, at), ccltest.Kill(tc.victim, nth))
			})
		}
	}
}

// Numbers go where they should on two hosts, and over TCP; and a loss for which no spare is left is an error on all, after which
// Shrink works.
func TestReplaceOnHosts(t *testing.T) {
	for _, w := range shrinkWorlds[:3] {
		t.Run(w.name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				last, _ := healed(t.Context(), t, c, 6, trouble{})
				ccltest.Barrier(t, last)
			}, append(w.opts, ccltest.Spares(2), ccltest.Kill(2, firstStep+1), ccltest.Kill(3, firstStep+3))...)
		})
	}
}

// A failure without a loss: the same ranks, and nobody is fresh.
func TestReplaceWithoutLoss(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, t *testing.T, c *ccl.Comm){
		"nothing at all": func(context.Context, *testing.T, *ccl.Comm) {},
		"abort": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			if c.Rank() == 1 {
				c.Abort(errors.New("on purpose"))
			}
			assert.ErrorIs(t, untilFailed(ctx, c), ccl.ErrAborted)
		},
		"cancel": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if c.Rank() == 0 {
				cancel()
			}
			assert.ErrorIs(t, untilFailed(ctx, c), ccl.ErrCanceled)
		},
		"mismatch": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			var err error
			for err == nil {
				if c.Rank() == 2 {
					err = ccl.Broadcast(ctx, c, []int{1, 2}, 0)
				} else {
					err = ccl.Barrier(ctx, c)
				}
			}
			assert.ErrorIs(t, err, ccl.ErrMismatch)
		},
	} {
		for _, hosts := range [][]string{nil, {"a", "b", "a", "b"}} {
			t.Run(fmt.Sprintf("%s, %d hosts", name, 1+len(hosts)/4), func(t *testing.T) {
				inPool(t, 3, 1, hosts, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					fail(ctx, t, c)
					next, err := c.Replace(ctx)
					require.NoError(t, err)
					defer next.Close()
					assert.Equal(t, []int{3, c.Rank(), 1}, []int{next.Size(), next.Rank(), next.Waiting()})
					assert.Empty(t, next.Fresh())
					assert.Equal(t, "world", next.Name())
					works(ctx, t, next)
					assert.Zero(t, c.Waiting(), "they are the new Comm's")
					_, err = c.Replace(ctx)
					wants(t, err, ccl.ErrUnsupported)
					assert.ErrorContains(t, err, "this Comm has been replaced")
				})
			})
		}
	}
}

// More are lost than spares wait: the same error on all, and Shrink of the Comm works.
func TestTooFewSpares(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.RoundRobin(3), inNet}} {
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			var err error
			for err == nil {
				require.ErrorIs(t, untilFailed(ctx, c), ccl.ErrRankLost)
				var next *ccl.Comm
				if next, err = c.Replace(ctx); err == nil {
					t.Cleanup(func() { next.Close() })
					c = next
				}
			}
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, ccl.ErrRankLost, e.Code)
			require.Equal(t, "Replace", e.Op)
			require.NotEmpty(t, e.Missing)
			require.Equal(t, e.Missing[0], e.Peer)
			require.ErrorContains(t, err, "; Shrink goes on without them")
			rest, err := c.Shrink(ctx)
			require.NoError(t, err)
			defer rest.Close()
			missing := 0 // the same on all
			for _, r := range e.Missing {
				missing |= 1 << r
			}
			least, most := []int{missing}, []int{missing}
			require.NoError(t, ccl.AllReduce(ctx, rest, least, least, ccl.Min))
			require.NoError(t, ccl.AllReduce(ctx, rest, most, most, ccl.Max))
			require.Equal(t, least, most)
			_, err = rest.Replace(ctx)
			require.ErrorIs(t, err, ccl.ErrUnsupported)
		}, append(opts, ccltest.Spares(1), ccltest.Kill(1, callsOfSeat+2), ccltest.Kill(3, callsOfSeat+3))...)
	}
}

// The spare of a Comm with a library makes a new communicator with the others.
func TestReplaceWithALibrary(t *testing.T) {
	toy := &toyBackend{}
	ccl.SetBackend(t, toy.backend())
	inPool(t, 3, 1, nil, ccl.Options{Backend: "mpi"}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Fresh() == nil {
			works(ctx, t, c)
			meet(ctx)
			if c.Rank() == 1 {
				assert.NoError(t, c.Close()) // it is gone; so would be a rank that was killed
				return
			}
			assert.Error(t, untilFailed(ctx, c))
			next, err := c.Replace(ctx)
			require.NoError(t, err)
			defer next.Close()
			c = next
		}
		assert.Equal(t, []int{1}, c.Fresh())
		assert.Equal(t, "mpi", c.Backend())
		assert.Equal(t, uintptr(1000+c.Rank()), c.Native())
		works(ctx, t, c)
	})
	assert.EqualValues(t, 6, toy.made.Load())
	require.Equal(t, toy.made.Load(), toy.closed.Load())
}
