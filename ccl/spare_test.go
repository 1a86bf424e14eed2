package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
)

// inPool runs f as the workers of a job with spares, and waits as its spares, all of them goroutines. Errors of spares are returned
// by rank. Several hosts are in virtual time.
func inPool(t *testing.T, n, spares int, hosts []string, o ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) []error {
	t.Helper()
	o.Spares = spares
	errs := make([]error, n+spares)
	run := func(t *testing.T, at func(ctx context.Context, r int) context.Context) {
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		ctx = context.WithValue(ctx, crowdKey{}, &crowd{size: n, full: make(chan struct{})})
		var all sync.WaitGroup
		for r, b := range boot.Local(n+spares, hosts...) {
			all.Go(func() {
				defer b.Close()
				ctx := at(ctx, r)
				c, err := ccl.NewComm(ctx, b, &o)
				if errs[r] = err; err != nil {
					return
				}
				defer c.Close()
				f(ctx, t, c)
			})
		}
		all.Wait()
	}
	if hosts == nil {
		run(t, func(ctx context.Context, _ int) context.Context { return ctx })
	} else {
		inBubble(t, n+spares, hosts, run)
	}
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
			require.NoError(t, err)
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

// One worker and one spare: the spare is all that is left.
func TestOnlyTheSpareIsLeft(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		if len(c.Fresh()) == 0 {
			for {
				ccltest.Barrier(t, c)
			}
		}
		require.Equal(t, []int{0}, c.Fresh())
		require.Equal(t, []int{1, 0, 0}, []int{c.Size(), c.Rank(), c.Waiting()})
		ccltest.Barrier(t, c)
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

// A library whose calls cannot be ended has no spares, on any rank, whether it is named or found.
func TestSparesOfALibraryThatHangs(t *testing.T) {
	for name, o := range map[string]ccl.Options{"named": {Backend: "mpi", Spares: 1}, "found": {Spares: 1}} {
		t.Run(name, func(t *testing.T) {
			b := (&toyBackend{}).backend()
			b.Title, b.Uninterruptible = "MPI", true
			if name == "found" {
				b.Choose = func(int, int, int) (int, error) { return 0, nil }
			}
			ccl.SetBackend(t, b)
			for r, err := range refusedComms(t, 3, func(int) *ccl.Options { return &o }) {
				if name == "found" && r == 2 { // the workers have found it
					wants(t, err, ccl.ErrUnused)
					continue
				}
				wants(t, err, ccl.ErrUnsupported)
				assert.ErrorContains(t, err, "Options.Spares (GOCCL_SPARES): a call inside MPI cannot be ended when a rank is lost, so no rank can be replaced")
			}
		})
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
		for _, err := range refusedComms(t, tc.n, func(int) *ccl.Options { return &tc.o }) {
			wants(t, err, tc.code)
			assert.ErrorContains(t, err, tc.text)
		}
	}
	for _, err := range refusedComms(t, 3, func(r int) *ccl.Options { return &ccl.Options{Spares: r % 2} }) {
		wants(t, err, ccl.ErrVersion)
		assert.ErrorContains(t, err, "Spares (GOCCL_SPARES)=")
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		part := ccltest.Split(t, c, 0, 0)
		_, err := part.Replace(t.Context())
		require.ErrorIs(t, err, ccl.ErrUnsupported)
		require.ErrorContains(t, err, "only the Comm of NewComm and those of Replace have spares")
		_, err = c.SplitWith(t.Context(), 0, 0, func(o *ccl.Options) { o.Spares = 7 })
		require.ErrorIs(t, err, ccl.ErrArgument)
		require.ErrorContains(t, err, "Options.Spares belongs to the whole job")
		require.NoError(t, c.Close())
		_, err = c.Replace(t.Context())
		require.ErrorIs(t, err, ccl.ErrClosed)
	}, ccltest.Spares(1))
	t.Run("GOCCL_SPARES is of the job of Join, and a negative number is none", func(t *testing.T) {
		t.Setenv("GOCCL_SPARES", "1")
		t.Setenv("GOCCL_LAUNCHER", "none")
		together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) { works(ctx, t, c) })
		_, err := ccl.Join(ctx, nil)
		wants(t, err, ccl.ErrArgument)
		assert.ErrorContains(t, err, "is 1, and the job has 1 rank: at least one of them works")
		c, err := ccl.Join(ctx, &ccl.Options{Spares: -1})
		if assert.NoError(t, err) {
			assert.NoError(t, c.Close())
		}
	})
}
