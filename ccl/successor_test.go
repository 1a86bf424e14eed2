package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() {
	roles["successor"], roles["killed at once"], roles["host killed"] = hearsSuccessors, hearsOfKilledAtOnce, hearsOfKilledHost
	roles["killed heir"] = hearsOfKilledHeir
}

// hearsSuccessors: the ranks of the list go one after the other; each time those that stay must hear what one of them does on the
// other host, in a Comm that has not lost anybody and in which they are in no call.
func hearsSuccessors(ctx context.Context, t *testing.T, list string) {
	world := joined(ctx, t, nil)
	c := world
	defer func() { c.Close() }() // who only ends is lost to others
	for one := range strings.SplitSeq(list, ",") {
		victim, err := strconv.Atoi(one[1:])
		require.NoError(t, err)
		color := 0
		if world.Rank() == victim {
			color = -1
		}
		rest, err := c.Split(ctx, color, 0)
		require.NoError(t, err)
		if world.Rank() == victim { // whom the others meet below
			require.NoError(t, ccl.Barrier(ctx, c))
		}
		code := ccl.ErrRankLost
		switch {
		case one[0] == 'c':
			code = ccl.ErrClosed
			if world.Rank() == victim {
				if c != world {
					require.NoError(t, c.Close())
				}
				return
			}
		case world.Rank() == victim:
			killSelf()
		}
		require.ErrorIs(t, untilFailed(ctx, c), code)
		require.NoError(t, ccl.Barrier(ctx, rest)) // all are past the loss
		next, err := rest.Split(ctx, 0, 0)         // what has happened so far is not its concern
		require.NoError(t, err)
		require.NoError(t, ccl.Barrier(ctx, next))
		teller := next.Size() - 1
		if next.Rank() == teller {
			rest.Abort(errors.New("for all to hear"))
		}
		select {
		case <-rest.Done():
		case <-ctx.Done():
		}
		var e *ccl.Error
		require.ErrorAs(t, rest.Err(), &e, "rank %d has heard nothing", world.Rank())
		require.Equal(t, ccl.ErrAborted, e.Code)
		require.Equal(t, teller, e.Peer)
		// A teller that ends before all have heard it is lost, while a host's first process is being succeeded.
		require.NoError(t, ccl.Barrier(ctx, next))
		defer rest.Close()
		c = next
	}
	fmt.Printf("rank %d: has heard all\n", world.Rank())
}

// When the first process of a host dies or leaves, the others of the host still hear what happens on other hosts,
// and those what happens there.
func TestSuccessorOfAHostsFirstProcess(t *testing.T) {
	for _, list := range []string{"k0", "c0", "k3", "c3", "k0,k1", "c0,k1", "k3,k0", "k0,c3,k1"} {
		t.Run(list, func(t *testing.T) {
			out := processes(t, 6, 2, "successor", list)
			for r := range 6 {
				if !strings.Contains(list, strconv.Itoa(r)) {
					require.Contains(t, out, fmt.Sprintf("rank %d: has heard all\n", r))
				}
			}
		})
	}
}

// hearsOfKilledAtOnce is a rank of TestR1KilledAtOnceIsNamed.
func hearsOfKilledAtOnce(ctx context.Context, t *testing.T, _ string) {
	c := joined(ctx, t, &ccl.Options{PeerTimeout: long})
	if c.Rank() == 1 {
		killSelf()
	}
	x := make([]int64, 1)
	var e *ccl.Error
	require.ErrorAs(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum), &e)
	require.Equal(t, ccl.ErrRankLost, e.Code)
	require.Equal(t, 1, e.Peer)
	fmt.Printf("rank %d: has heard\n", c.Rank())
}

// A process that is killed before it has said anything is named, and not only when it has been silent for PeerTimeout.
// test/promises asserts how soon.
func TestR1KilledAtOnceIsNamed(t *testing.T) {
	out := processes(t, 4, 4, "killed at once", "")
	for _, r := range []int{0, 2, 3} {
		require.Contains(t, out, fmt.Sprintf("rank %d: has heard\n", r))
	}
}

// hearsOfKilledHost is a rank of TestKilledHostIsNamed. The pair of rank 0 has a connection, that of rank 1 has none yet.
func hearsOfKilledHost(ctx context.Context, t *testing.T, _ string) {
	world := joined(ctx, t, &ccl.Options{PeerTimeout: long})
	pairs := []int{0, 1, 2, 2, 1, 0} // its colors: of {0, 5}, {1, 4}, {2, 3}
	pair, err := world.Split(ctx, pairs[world.Rank()], 0)
	require.NoError(t, err)
	t.Cleanup(func() { pair.Close() })
	rest, err := world.Split(ctx, world.Rank()/3, 0)
	require.NoError(t, err)
	t.Cleanup(func() { rest.Close() })
	if pairs[world.Rank()] == 0 {
		require.NoError(t, ccl.Barrier(ctx, pair))
	}
	require.NoError(t, ccl.Barrier(ctx, world))
	if world.Rank() >= 3 {
		killSelf()
	}
	began := time.Now()
	var e *ccl.Error
	require.ErrorAs(t, ccl.Barrier(ctx, pair), &e)
	require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
	require.Equal(t, 1, e.Peer, "%v", e)
	require.Less(t, time.Since(began), long, "it was waited for what nobody is left to say")
	fmt.Printf("rank %d: has heard\n", world.Rank())
}

// Where all processes of a host are killed at once, nobody is left there to say so. Each is named all the same, and none only when it
// has been silent for PeerTimeout.
func TestKilledHostIsNamed(t *testing.T) {
	out := processes(t, 6, 2, "host killed", "")
	for r := range 3 {
		require.Contains(t, out, fmt.Sprintf("rank %d: has heard\n", r))
	}
}

// hearsOfKilledHeir is a rank of TestKilledHeirIsNamed. Ranks 2 and 3 are a host: rank 2 leaves, and then kills rank 3.
func hearsOfKilledHeir(ctx context.Context, t *testing.T, _ string) {
	world := joined(ctx, t, &ccl.Options{PeerTimeout: long})
	pids := make([]int64, world.Size())
	require.NoError(t, ccl.AllGather(ctx, world, pids, []int64{int64(os.Getpid())}))
	color := 0
	if world.Rank() == 2 {
		color = -1
	}
	rest, err := world.Split(ctx, color, 0)
	require.NoError(t, err)
	if world.Rank() == 2 {
		require.NoError(t, world.Close())
		next, err := os.FindProcess(int(pids[3]))
		require.NoError(t, err)
		require.NoError(t, next.Kill())
		return
	}
	t.Cleanup(func() { rest.Close(); world.Close() })
	limit, cancel := context.WithTimeout(ctx, long/2)
	defer cancel()
	select {
	case <-rest.Done():
	case <-limit.Done():
	}
	var e *ccl.Error
	require.ErrorAs(t, rest.Err(), &e, "nobody has said so")
	require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
	require.Equal(t, 2, e.Peer, "%v", e)
	fmt.Printf("rank %d: has heard\n", world.Rank())
}

// The first process of a host leaves in good order, and the next, the last one there, is killed at once: it has
// not left, and is reported lost.
func TestKilledHeirIsNamed(t *testing.T) {
	out := processes(t, 4, 2, "killed heir", "")
	for r := range 2 {
		require.Contains(t, out, fmt.Sprintf("rank %d: has heard\n", r))
	}
}
