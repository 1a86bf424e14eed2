package harness

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
)

// Each collective and type settles in bounded time, with all ranks making as many calls, and changes nothing that a row needs.
func TestSettle(t *testing.T) {
	for _, args := range [][]string{{"-op", "alltoallv"}, {"-op", "barrier"}, {"-op", "broadcast", "-r", "all"}, {"-d", "f8e4m3"}, {"-d", "f8e4m3", "-o", "mulsum"},
		{"-m", "3"}, {"-z", "0"}, {"-rotate", "2"}, {"-b", "0", "-e", "0"}} {
		o := options(t, append(args, "-n", "2")...)
		ready(t, 3, o, (*session).settle).ok(t)
	}
}

// A first call that never ends is over after -T, before the first row as well.
func TestSettleEndsInTime(t *testing.T) {
	o := options(t, "-T", "100ms", "-n", "2")
	j := sessions(t, 2, o, func(s *session) error {
		if s.world.Rank() == 1 {
			<-s.world.Done()
			return nil
		}
		return limited(s, "allreduce float sum", 8, func(ctx context.Context) error { return ccl.Barrier(ctx, s.world) })
	})
	require.ErrorContains(t, j.errs[0], "allreduce float sum, 8 bytes: longer than -T 100ms")
}

// Without -n the smallest line is timed for 10 ms, and sizes that are named twice are measured twice.
func TestSmallSizesAreTimedForLong(t *testing.T) {
	o, err := option.Parse([]string{"-sizes", "8,64,64,65"})
	require.NoError(t, err)
	j := sessions(t, 2, o, (*session).run).ok(t)
	require.Len(t, j.file.Results, 4)
	for _, r := range j.file.Results {
		require.GreaterOrEqual(t, time.Duration(float64(r.Iterations)*r.OutOfPlace.TimeMax*1e3), o.Long()*9/10, "%d bytes", r.Size)
	}
	require.Equal(t, 10*time.Millisecond, o.Long())
}

// A machine whose threads wait for processors is said above the table, and in the file; one that is not, nowhere.
func TestBusy(t *testing.T) {
	j := sessions(t, 1, options(t), func(s *session) error {
		s.out.busy(busyShare-1, 0)
		require.Empty(t, s.out.file.Busy)
		s.out.busy(340, 0)
		return nil
	}).ok(t)
	require.Equal(t, "# busy: the process of rank 0 on this machine waits for a processor 34 % of the time, so times are longer, and vary\n", j.out.String())
	require.Equal(t, strings.TrimSuffix(j.out.String(), "\n"), "# "+j.file.Busy)
}
