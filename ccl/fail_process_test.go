package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// endings are the ways in which the rank process victim comes to its end, while the
// others go on calling.
var endings = map[string]func(ctx context.Context, c *ccl.Comm){
	// killed while it waits in no call
	"killed": func(context.Context, *ccl.Comm) { killSelf() },
	// killed in the middle of a call
	"killed in a call": func(ctx context.Context, c *ccl.Comm) {
		go killSelf()
		callOn(ctx, c)
	},
	// ends as if all were well, in the middle of a call
	"exit in a call": func(ctx context.Context, c *ccl.Comm) {
		go os.Exit(0)
		callOn(ctx, c)
	},
	// says good bye in good order, and at once
	"close": func(_ context.Context, c *ccl.Comm) {
		c.Close()
		os.Exit(0)
	},
	// a panic, with Close deferred
	"panic": func(_ context.Context, c *ccl.Comm) {
		go func() { // of which no test fails
			defer c.Close()
			panic("boom")
		}()
		select {}
	},
	// an abort by a process
	"abort": func(_ context.Context, c *ccl.Comm) { c.Abort(errors.New("disk full")) },
	// a watchdog that comes too late must do no harm
	"abort after close": func(_ context.Context, c *ccl.Comm) {
		c.Close()
		c.Abort(errors.New("disk full"))
		os.Exit(0)
	},
	// leaves with work under way
	"close with work queued": func(_ context.Context, c *ccl.Comm) {
		x := make([]float32, 1<<20)
		c.On(nil).Recv(ccl.BufOf(x), 0)  // which rank 0 never sends
		c.On(nil).Send(ccl.BufOf(x), 99) // refused
		c.Close()
		os.Exit(0)
	},
}

const victim = 1

// killSelf ends this process as the kernel would when memory is short.
func killSelf() {
	p, _ := os.FindProcess(os.Getpid())
	p.Kill()
	select {}
}

// callOn makes calls until one fails.
func callOn(ctx context.Context, c *ccl.Comm) error {
	x := make([]float32, 100_000)
	for {
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
			return err
		}
	}
}

func init() { roles["ending"] = ending }

// ending calls until a call fails, because the victim has come to its end.
func ending(ctx context.Context, t *testing.T, how string) {
	o := &ccl.Options{}
	if how == "close with work queued" {
		o.PeerTimeout = 2 * time.Second // what Close waits
	}
	c := joined(ctx, t, o)
	err := ccl.Barrier(ctx, c) // which fails for a rank that is slower than the victim
	if c.Rank() == victim {
		endings[how](ctx, c)
	}
	if err == nil {
		err = callOn(ctx, c)
	}
	var e *ccl.Error
	errors.As(err, &e)
	fmt.Printf("rank %d: code %d peer %d: %v, certain %v\n", c.Rank(), e.Code, e.Peer, err, e.Certain)
}

// Whatever ends a rank, every other returns from its call with an error that names
// it: with shared memory, over TCP, and where both are used.
func TestRankEnds(t *testing.T) {
	for _, tc := range []struct {
		ending string
		codes  []ccl.Code
	}{
		{"killed", []ccl.Code{ccl.ErrRankLost}},
		{"killed in a call", []ccl.Code{ccl.ErrRankLost}},
		{"exit in a call", []ccl.Code{ccl.ErrRankLost}},
		{"close", []ccl.Code{ccl.ErrClosed}},
		{"panic", []ccl.Code{ccl.ErrAborted}},
		{"abort", []ccl.Code{ccl.ErrAborted}},
		{"abort after close", []ccl.Code{ccl.ErrClosed}},
		{"close with work queued", []ccl.Code{ccl.ErrClosed, ccl.ErrMismatch}},
	} {
		t.Run(tc.ending, func(t *testing.T) {
			for _, hosts := range []int{0, 4, 2} {
				if hosts == 2 && testing.Short() {
					continue
				}
				t.Run(fmt.Sprintf("hosts=%d", hosts), func(t *testing.T) {
					out := processes(t, 4, hosts, "ending", tc.ending)
					for _, r := range []int{0, 2, 3} {
						ok := false
						for _, code := range tc.codes {
							ok = ok || strings.Contains(out, fmt.Sprintf("rank %d: code %d peer %d: ", r, code, victim))
						}
						assert.True(t, ok, "rank %d should have told of rank %d:\n%s", r, victim, out)
					}
					want := []int{0}
					if slices.Contains(tc.codes, ccl.ErrRankLost) {
						want = []int{3} // it has ended, and all know that
					}
					if hosts > 0 { // on a machine that is busy, a rank may believe the end of a data connection before it hears that
						want = []int{0, 1, 2, 3}
					}
					assert.Contains(t, want, strings.Count(out, ", certain true\n"), out)
				})
			}
		})
	}
}

// A rank that gives a cause and closes its Comm at once has told it to all: over hosts, too, where its good bye comes on another
// connection, and may come first.
func TestCauseOfOneThatCloses(t *testing.T) {
	rounds := 80
	if testing.Short() {
		rounds = 20
	}
	ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		for by := range rounds {
			by %= world.Size()
			c, err := world.Split(ctx, 0, world.Rank())
			require.NoError(t, err)
			require.NoError(t, ccl.Barrier(ctx, c)) // connected
			require.NoError(t, ccl.Barrier(ctx, world))
			if c.Rank() == by {
				c.Abort(errors.New("disk full"))
				require.NoError(t, c.Close())
				continue
			}
			for err == nil {
				err = ccl.Barrier(ctx, c)
			}
			require.ErrorIs(t, err, ccl.ErrAborted)
			require.ErrorContains(t, err, fmt.Sprintf("aborted by rank %d: disk full", by))
			require.NoError(t, c.Close())
		}
	}, ccltest.Processes(4), ccltest.Hosts(2))
}
