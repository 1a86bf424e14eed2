package harness

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
)

// barriers are checked barriers, each of which wait replaces.
func barriers(t *testing.T, ranks int, args []string, wait func(calls int, ctx context.Context, c *ccl.Comm) error) *job {
	o, err := option.Parse(append([]string{"-op", "barrier", "-b", "64", "-e", "64", "-n", "2"}, args...))
	require.NoError(t, err)
	return ready(t, ranks, o, func(s *session) error {
		c, calls := coll.Named[float32]("barrier"), 0
		c.Run = func(ctx context.Context, comm *ccl.Comm, _ coll.Shape, _, _ []float32, _ ccl.Op) error {
			calls++
			return wait(calls, ctx, comm)
		}
		return curve(s, c, ccl.Sum, -1)
	})
}

func nothing(int, context.Context, *ccl.Comm) error { return nil }

// A barrier that does nothing is found in each half, on any number of ranks, also within groups; one that waits is not.
func TestBarrierThatDoesNothing(t *testing.T) {
	for _, tc := range []struct {
		ranks int
		args  []string
	}{{2, nil}, {3, nil}, {8, nil}, {4, []string{"-split", "mod:2"}}, {5, []string{"-split", "div:3"}}} {
		j := barriers(t, tc.ranks, tc.args, nothing).ok(t)
		require.Positive(t, *j.file.Results[0].OutOfPlace.Wrong, "%+v", tc)
		require.Positive(t, *j.file.Results[0].InPlace.Wrong, "%+v", tc)
		require.Contains(t, j.err.String(), "left before every rank had come")

		j = barriers(t, tc.ranks, append([]string{"-c", "5"}, tc.args...), func(_ int, ctx context.Context, c *ccl.Comm) error { return ccl.Barrier(ctx, c) })
		j.ok(t)
		require.Zero(t, *j.file.Results[0].OutOfPlace.Wrong, "%+v: %s", tc, &j.err)
		require.Zero(t, *j.file.Results[0].InPlace.Wrong, "%+v: %s", tc, &j.err)
	}
}

// Each checked iteration counts: here the second of three is the one that does not wait. And each rank comes late in
// its turn: a barrier that waits for all but rank 1 is found.
func TestBarrierEachIteration(t *testing.T) {
	j := barriers(t, 2, []string{"-c", "3"}, func(calls int, ctx context.Context, c *ccl.Comm) error {
		if calls == 7 { // one to warm up, two timed together, two one by one
			return nil
		}
		return ccl.Barrier(ctx, c)
	}).ok(t)
	require.Equal(t, int64(1), *j.file.Results[0].OutOfPlace.Wrong, "the one that did not come late")
	require.Zero(t, *j.file.Results[0].InPlace.Wrong)
	require.Contains(t, j.err.String(), "left before every rank had come, in check 2\n")

	j = barriers(t, 3, []string{"-c", "3"}, func(calls int, ctx context.Context, c *ccl.Comm) error {
		token := []uint8{0} // from rank 2 to rank 0 and back: nobody waits for rank 1
		switch c.Rank() {
		case 0:
			if err := ccl.Recv(ctx, c, token, 2); err != nil {
				return err
			}
			return ccl.Send(ctx, c, token, 2)
		case 2:
			if err := ccl.Send(ctx, c, token, 0); err != nil {
				return err
			}
			return ccl.Recv(ctx, c, token, 0)
		}
		return nil
	}).ok(t)
	require.Positive(t, *j.file.Results[0].OutOfPlace.Wrong)
}

// Where no host has two ranks of a group there is nothing to see, and no 0 to claim.
func TestBarrierUnseen(t *testing.T) {
	for _, args := range [][]string{{"-split", "div:1"}, {"-split", "mod:2"}} {
		j := barriers(t, 3, args, nothing).ok(t)
		if args[1] == "div:1" {
			require.Nil(t, j.file.Results[0].OutOfPlace.Wrong)
			require.Contains(t, j.out.String(), "     N/A")
			continue
		}
		require.Positive(t, *j.file.Results[0].OutOfPlace.Wrong, "rank 1 is alone and sees nothing; ranks 0 and 2 do")
	}
	j := barriers(t, 1, nil, nothing).ok(t)
	require.Nil(t, j.file.Results[0].OutOfPlace.Wrong)
}
