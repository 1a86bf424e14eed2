//go:build linux

package promises

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() {
	parts["killed"] = func(ctx context.Context, c *ccl.Comm) { lose(ctx, c, syscall.SIGKILL) }
	parts["stopped"] = func(ctx context.Context, c *ccl.Comm) { lose(ctx, c, syscall.SIGSTOP) }
	parts["shrinks"] = shrinks
}

// lose has the victim end by a signal; the argument is how many MiB it has touched. Of the
// others the last is in no call, and the rest are.
func lose(ctx context.Context, c *ccl.Comm, s syscall.Signal) {
	if c.Rank() == victim {
		mib, _ := strconv.Atoi(argument())
		memory := make([]byte, mib<<20)
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
		if err := ccl.Barrier(ctx, c); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond) // the others are in their call
		say("victim", c, nil)
		if s == syscall.SIGSTOP {
			watchdog()
		}
		syscall.Kill(os.Getpid(), s)
		time.Sleep(time.Minute)
		_ = memory[0]
		return
	}
	if err := ccl.Barrier(ctx, c); err != nil {
		return
	}
	if c.Rank() == c.Size()-1 {
		<-c.Done()
		say("heard", c, c.Err())
		return
	}
	say("heard", c, callOn(ctx, c))
}

// lossesOf runs n processes several times, and returns how long each survivor took to hear of
// the victim's end.
func lossesOf(t *testing.T, trials, n, hosts, mib int, how string) (took []time.Duration) {
	t.Helper()
	for range trials {
		lines, text := processes(t, n, hosts, how, fmt.Sprint(mib))
		ended := first(t, lines, "victim", victim, text).at
		for r := range n {
			if r == victim {
				continue
			}
			l := first(t, lines, "heard", r, text)
			require.Equal(t, ccl.ErrRankLost, l.code, text)
			require.Equal(t, victim, l.peer, text)
			took = append(took, l.at.Sub(ended))
		}
	}
	return took
}

func TestR1KilledRankIsNamed(t *testing.T) {
	trials, mib := 2, 64
	if *write {
		trials, mib = 10, 4096
	}
	for _, tc := range []struct {
		what    string
		n       int
		hosts   int
		mib     int
		promise time.Duration
	}{
		{"a rank is killed: every other of the host names it", 4, 0, 0, 50 * time.Millisecond},
		{fmt.Sprintf("the same, with %d MiB touched", mib), 4, 0, mib, 50 * time.Millisecond},
		{"the same, on 2 hosts of 2 ranks", 4, 2, 0, 100 * time.Millisecond},
		{"the same, on 4 hosts of 1 rank", 4, 4, 0, 100 * time.Millisecond},
	} {
		if tc.hosts == 2 && !*write { // TestR1KilledHostIsNamed has hosts of several ranks
			continue
		}
		n := trials
		if tc.mib > 0 {
			n = max(trials/2, 1)
		}
		middle, largest := spread(lossesOf(t, n, tc.n, tc.hosts, tc.mib, "killed"))
		record(t, 1, "R1", tc.what, "≤ "+tc.promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), n)
		asserted(t, tc.what, largest, tc.promise)
	}
}

func TestR2StoppedRankIsNamed(t *testing.T) {
	trials := times(1, 5)
	for _, tc := range []struct {
		what    string
		hosts   int
		promise time.Duration
	}{
		{"a rank is stopped: every other of the host names it", 0, 500 * time.Millisecond},
		{"the same, the ranks on a host each", 3, time.Second},
	} {
		if tc.hosts > 0 && !*write { // TestR2StoppedHostIsNamed
			continue
		}
		took := lossesOf(t, trials, 3, tc.hosts, 0, "stopped")
		for i := range took {
			took[i] -= peerTimeout
		}
		middle, largest := spread(took)
		record(t, 2, "R2", tc.what, "≤ PeerTimeout + "+tc.promise.String(), "PeerTimeout %+dms, at most %+dms (%d trials)", middle.Milliseconds(), largest.Milliseconds(), trials)
		asserted(t, tc.what, largest, tc.promise)
	}
}

// shrinks has the processes of the second host end. The others print how long their Shrink takes, whose Comm has no rank of that host.
func shrinks(ctx context.Context, c *ccl.Comm) {
	if c.Place().Node == 1 {
		if err := ccl.Barrier(ctx, c); err == nil {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		select {}
	}
	ccl.Barrier(ctx, c) // it fails where the others have ended before this rank is through
	callOn(ctx, c)
	began := time.Now()
	next, err := c.Shrink(ctx)
	took := time.Since(began)
	if err != nil {
		say("shrunk", c, err)
		return
	}
	defer next.Close()
	fmt.Printf("shrunk to %d ranks of %d hosts in %d ns\n", next.Size(), next.Place().Nodes, took)
}

// Two ranks of one host are killed at once: the Shrink of the others is not held up by the second, for which no connection of the
// control plane has ended.
func TestR21ShrinkAfterAHost(t *testing.T) {
	const promise = 50 * time.Millisecond
	what := "Shrink, after the 2 ranks of one of 3 hosts were killed"
	trials := times(1, 20)
	var took []time.Duration
	for range trials {
		_, text := processes(t, 6, 3, "shrinks", "")
		all := regexp.MustCompile(`shrunk to 4 ranks of 2 hosts in (\d+) ns`).FindAllStringSubmatch(text, -1)
		require.Len(t, all, 4, text)
		slowest := time.Duration(0)
		for _, m := range all {
			ns, err := strconv.ParseInt(m[1], 10, 64)
			require.NoError(t, err)
			slowest = max(slowest, time.Duration(ns))
		}
		took = append(took, slowest)
	}
	middle, largest := spread(took)
	record(t, 21, "R21", what, "median ≤ "+promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), trials)
	asserted(t, what, middle, promise)
}
