package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
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
				require.NoError(t, ccl.Barrier(t.Context(), last))
			}, append(w.opts, ccltest.Spares(2), ccltest.Kill(1, firstStep+1), ccltest.Kill(3, firstStep+3))...)
		})
	}
}

// inPool runs f as the workers of a job with spares, and waits as its spares, all of them goroutines. Errors of spares are returned
// by rank.
func inPool(t *testing.T, n, spares int, hosts []string, o ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	ctx = context.WithValue(ctx, crowdKey{}, &crowd{size: n, full: make(chan struct{})})
	o.Spares = spares
	errs := make([]error, n+spares)
	var all sync.WaitGroup
	for r, b := range boot.Local(n+spares, hosts...) {
		all.Go(func() {
			defer b.Close()
			c, err := ccl.NewComm(ctx, b, &o)
			if errs[r] = err; err != nil {
				return
			}
			defer c.Close()
			f(ctx, t, c)
		})
	}
	all.Wait()
	return errs
}

// A spare that is not needed hears that the job has ended, however the others end, and says which it is.
func TestSpareUnused(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, t *testing.T, c *ccl.Comm){
		"all close": func(context.Context, *testing.T, *ccl.Comm) {},
		"after an abort": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			if c.Rank() == 0 {
				c.Abort(errors.New("on purpose"))
			}
			assert.ErrorIs(t, untilFailed(ctx, c), ccl.ErrAborted)
		},
		"by Finish": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			err := errors.New("the disk is full")
			c.Finish(&err)
		},
		"after Shrink": func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			next, err := c.Shrink(ctx)
			if assert.NoError(t, err) {
				works(ctx, t, next)
				next.Close()
			}
		},
	} {
		for _, hosts := range [][]string{nil, {"a", "a", "b", "b", "c"}} {
			t.Run(fmt.Sprintf("%s, %d hosts", name, max(len(hosts)-2, 1)), func(t *testing.T) {
				errs := inPool(t, 3, 2, hosts, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					works(ctx, t, c)
					meet(ctx) // all are there
					end(ctx, t, c)
				})
				for r, err := range errs[:3] {
					assert.NoError(t, err, "rank %d", r)
				}
				for i, err := range errs[3:] {
					wants(t, err, ccl.ErrUnused)
					assert.EqualError(t, err, fmt.Sprintf("ccl: rank %d: NewComm: spare %d of 2 was not needed: the job has ended", 3+i, 1+i))
				}
			})
		}
	}
}

// The context of a spare bounds its wait. The others do not notice, but by Waiting.
func TestSpareGivesUp(t *testing.T) {
	boots := boot.Local(3)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	short, give := context.WithCancel(ctx)
	defer give()
	var all sync.WaitGroup
	for r, b := range boots {
		all.Go(func() {
			defer b.Close()
			of := ctx
			if r == 2 {
				of = short
			}
			c, err := ccl.NewComm(of, b, &ccl.Options{Spares: 1})
			if r == 2 {
				wants(t, err, ccl.ErrCanceled)
				assert.ErrorContains(t, err, "ccl: rank 2: NewComm: canceled: spare 1 of 1, waits: context canceled")
				return
			}
			if !assert.NoError(t, err) {
				return
			}
			defer c.Close()
			assert.NoError(t, ccl.Barrier(ctx, c))
			assert.Equal(t, 1, c.Waiting())
			assert.Contains(t, c.String(), "1 of 1 spares wait")
			assert.NoError(t, ccl.Barrier(ctx, c))
			if r == 0 {
				give()
			}
			until(t, "the spare is said to wait", func() bool { return c.Waiting() == 0 })
			works(ctx, t, c)
			_, err = c.Replace(ctx)
			assert.NoError(t, err, "nobody is lost")
		})
	}
	all.Wait()
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
					if !assert.NoError(t, err) {
						return
					}
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
	for _, opts := range [][]ccltest.Option{nil, {ccltest.RoundRobin(3)}} {
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

// One worker and one spare: the spare is all that is left.
func TestOnlyTheSpareIsLeft(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		if len(c.Fresh()) == 0 {
			for {
				require.NoError(t, ccl.Barrier(t.Context(), c))
			}
		}
		require.Equal(t, []int{0}, c.Fresh())
		require.Equal(t, []int{1, 0, 0}, []int{c.Size(), c.Rank(), c.Waiting()})
		require.NoError(t, ccl.Barrier(t.Context(), c))
	}, ccltest.Spares(1), ccltest.Kill(0, callsOfSeat+3))
}

// What is fresh stays so in the next Comms until it says that it has been restored.
func TestFreshUntilRestored(t *testing.T) {
	for _, says := range []bool{false, true} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			if c.Fresh() == nil {
				require.ErrorIs(t, untilFailed(ctx, c), ccl.ErrRankLost)
				next, err := c.Replace(ctx)
				require.NoError(t, err)
				defer next.Close()
				c = next
			}
			require.Equal(t, []int{1}, c.Fresh())
			require.NoError(t, ccl.Barrier(ctx, c))
			if says {
				c.Restored()
			}
			next, err := c.Replace(ctx)
			require.NoError(t, err)
			defer next.Close()
			if says {
				require.Empty(t, next.Fresh())
			} else {
				require.Equal(t, []int{1}, next.Fresh())
			}
			require.NoError(t, ccl.Barrier(ctx, next))
		}, ccltest.Spares(1), ccltest.Kill(1, callsOfSeat+2))
	}
}

// What Replace, NewComm and Split refuse.
func TestSparesRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := c.Replace(ctx)
		wants(t, err, ccl.ErrUnsupported)
		assert.EqualError(t, err, fmt.Sprintf("ccl: rank %d: Replace: the job has no spares: Options.Spares (GOCCL_SPARES) is 0", c.Rank()))
		assert.Nil(t, c.Fresh())
		assert.Zero(t, c.Waiting())
		c.Restored()
		works(ctx, t, c)
	})
	var none *ccl.Comm
	_, err := none.Replace(ctx)
	wants(t, err, ccl.ErrArgument)
	assert.Nil(t, none.Fresh())
	assert.Zero(t, none.Waiting())
	none.Restored()
	for _, tc := range []struct {
		n    int
		o    ccl.Options
		code ccl.Code
		text string
	}{
		{2, ccl.Options{Spares: 2}, ccl.ErrArgument, "Options.Spares (GOCCL_SPARES) is 2, and the job has 2 ranks: at least one of them works"},
		{1, ccl.Options{Spares: 5}, ccl.ErrArgument, "is 5, and the job has 1 rank:"},
	} {
		for _, err := range newComms(t, tc.n, func(int) *ccl.Options { return &tc.o }) {
			wants(t, err, tc.code)
			assert.ErrorContains(t, err, tc.text)
		}
	}
	for _, err := range newComms(t, 3, func(r int) *ccl.Options { return &ccl.Options{Spares: r % 2} }) {
		wants(t, err, ccl.ErrVersion)
		assert.ErrorContains(t, err, "Spares (GOCCL_SPARES)=")
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		part, err := c.Split(t.Context(), 0, 0)
		require.NoError(t, err)
		defer part.Close()
		_, err = part.Replace(t.Context())
		require.ErrorIs(t, err, ccl.ErrUnsupported)
		require.ErrorContains(t, err, "only the Comm of NewComm and those of Replace have spares")
		_, err = c.SplitWith(t.Context(), 0, 0, func(o *ccl.Options) { o.Spares = 7 })
		require.ErrorIs(t, err, ccl.ErrArgument)
		require.ErrorContains(t, err, "Options.Spares belongs to the whole job")
		require.NoError(t, c.Close())
		_, err = c.Replace(t.Context())
		require.ErrorIs(t, err, ccl.ErrClosed)
	}, ccltest.Spares(1))
	t.Run("a negative number is none, whatever GOCCL_SPARES says", func(t *testing.T) {
		t.Setenv("GOCCL_SPARES", "1")
		world(t, 2, nil, func(int) *ccl.Options { return &ccl.Options{Spares: -1} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			works(ctx, t, c)
			assert.Equal(t, 2, c.Size())
		})
		errs := inPool(t, 2, 0, nil, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm) { assert.Equal(t, 1, c.Size()) })
		assert.NoError(t, errs[0])
		wants(t, errs[1], ccl.ErrUnused)
	})
}
