package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestSuccessorProcess is not a test of its own: it is what the processes run that
// TestSuccessorOfAHostsFirstProcess starts. The ranks of the list go one after the other; each time those that stay
// must hear what one of them does on the other host, in a Comm that has not lost anybody and in which they are in no call.
func TestSuccessorProcess(t *testing.T) {
	list := os.Getenv("CCL_TEST_SUCCESSOR")
	if list == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	world, err := ccl.Join(ctx, nil)
	require.NoError(t, err)
	defer world.Close()
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
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			var out bytes.Buffer
			err := boot.Spawn(ctx, boot.Command{N: 6, Hosts: 2, Path: os.Args[0], KeepGoing: true,
				Args: []string{"-test.run=^TestSuccessorProcess$"}, Env: append(os.Environ(), "CCL_TEST_SUCCESSOR="+list, "GORACE=atexit_sleep_ms=0"),
				Stdout: &out, Stderr: &out})
			require.NoError(t, ctx.Err(), "%v\n%s", err, &out)
			for r := range 6 {
				if !strings.Contains(list, strconv.Itoa(r)) {
					require.Contains(t, out.String(), fmt.Sprintf("rank %d: has heard all\n", r))
				}
			}
			require.NotRegexp(t, regexp.MustCompile(`SIGSEGV|SIGBUS|fatal error|FAIL`), out.String())
		})
	}
}

// TestKilledAtOnceProcess is what the processes run that TestR1KilledAtOnceIsNamed starts.
func TestKilledAtOnceProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_AT_ONCE") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: long})
	require.NoError(t, err)
	defer c.Close()
	if c.Rank() == 1 {
		killSelf()
	}
	x := make([]int64, 1)
	err = ccl.AllReduce(ctx, c, x, x, ccl.Sum)
	var e *ccl.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, ccl.ErrRankLost, e.Code)
	require.Equal(t, 1, e.Peer)
	fmt.Printf("rank %d: has heard\n", c.Rank())
}

// A process that is killed before it has said anything is named, and not only when it has been silent for PeerTimeout.
// test/promises asserts how soon.
func TestR1KilledAtOnceIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var out bytes.Buffer
	err := boot.Spawn(ctx, boot.Command{N: 4, Hosts: 4, Path: os.Args[0], KeepGoing: true,
		Args: []string{"-test.run=^TestKilledAtOnceProcess$"}, Env: append(os.Environ(), "CCL_TEST_AT_ONCE=1", "GORACE=atexit_sleep_ms=0"),
		Stdout: &out, Stderr: &out})
	require.NoError(t, ctx.Err(), "%v\n%s", err, &out)
	for _, r := range []int{0, 2, 3} {
		require.Contains(t, out.String(), fmt.Sprintf("rank %d: has heard\n", r))
	}
}
