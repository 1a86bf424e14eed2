package ccl_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// logs is what all ranks of a test log.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) options(timeout time.Duration) *ccl.Options {
	return &ccl.Options{Timeout: timeout, Log: slog.New(slog.NewTextHandler(l, nil))}
}

// everything is options, with what is logged at level Debug.
func (l *logs) everything(timeout time.Duration) *ccl.Options {
	return &ccl.Options{Timeout: timeout, Log: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
}

// Reports of a part of the world name it, and give ranks of the world.
func TestReportsOfAPart(t *testing.T) {
	var l logs
	world(t, 4, nil, func(int) *ccl.Options { return l.everything(200 * time.Millisecond) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.Split(ctx, c.Rank()%2, 0)
		require.NoError(t, err)
		defer part.Close()
		part.SetName("odd")
		if c.Rank() == 3 {
			wants(t, ccl.Barrier(ctx, part), ccl.ErrTimeout)
		}
		meet(ctx)
	})
	l.eventually(t, "ccl: odd: rank 1 (world rank 3): Comm: timed out at rank 0 (world rank 1)", "last calls of odd rank 1 (world rank 3) on host")
}

// eventually waits for a line with all of parts.
func (l *logs) eventually(t testing.TB, parts ...string) {
	t.Helper()
	until(t, "no line with "+strings.Join(parts, " and "), func() bool { return l.has(parts...) })
	if !l.has(parts...) {
		t.Log(l.String())
	}
}

func (l *logs) has(parts ...string) bool {
	for line := range strings.Lines(callSite.ReplaceAllString(l.String(), "")) { // known only if a call had waited
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// A rank that is late is named in the log, with its last call, long before anything fails; once.
func TestR3LateRankIsNamed(t *testing.T) {
	t.Setenv("GOCCL_STALL_WARN", "700ms")
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			var l logs
			hosts := p.hosts(3)
			virtually(t, 3, hosts, func(int) *ccl.Options { return l.options(time.Minute) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				works(ctx, t, c)
				if c.Rank() == 2 {
					l.eventually(t, "ccl: world: AllReduce #2 int64 x 1 sum has waited for", "on rank 0:", "rank 2 on host", "has not arrived; its last call is AllReduce #1 int64 x 2 sum")
				}
				assert.NoError(t, sum(ctx, c))
			})
			assert.Equal(t, 1, strings.Count(l.String(), "has waited for"), l.String())
		})
	}
}

// A timeout names the rank that has not come, not one that waits for it, on whatever host.
func TestR3TimeoutNamesTheMissingRank(t *testing.T) {
	o := &ccl.Options{Timeout: 3 * time.Second}
	inTime(t, 4, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		if c.Rank() == 3 {
			<-c.Done()
			e := wants(t, c.Err(), ccl.ErrTimeout)
			assert.Equal(t, 3, e.Peer)
			return
		}
		e := wants(t, sum(ctx, c), ccl.ErrTimeout)
		assert.Equal(t, 3, e.Peer, "%v", e)
	})
}

// Ranks that wait for each other in different Comms are named, while all stand still.
func TestDeadlockAcrossCommsIsNamed(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			var l logs
			virtually(t, 2, p.hosts(2), func(int) *ccl.Options { return l.options(time.Minute) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				tp, err := c.Split(ctx, 0, 0)
				require.NoError(t, err)
				defer tp.Close()
				dp, err := c.Split(ctx, 0, 0)
				require.NoError(t, err)
				defer dp.Close()
				tp.SetName("tp")
				dp.SetName("dp")
				works(ctx, t, dp)
				works(ctx, t, dp)
				once, cancel := context.WithCancel(ctx)
				go func() {
					defer cancel()
					l.eventually(t, "ccl: deadlock: rank 0 in tp #1 waits for 1; rank 1 in dp #3 waits for 0. Rank 0 on host", ": AllReduce #1 int64 x 1 sum.")
				}()
				mine := tp
				if c.Rank() == 1 {
					mine = dp
				}
				wants(t, sum(once, mine), ccl.ErrCanceled)
				meet(ctx)
			})
			assert.Equal(t, 1, strings.Count(l.String(), "deadlock"), l.String())
		})
	}
}

// Receives that wait for each other are a deadlock within one Comm.
func TestDeadlockOfReceivesIsNamed(t *testing.T) {
	var l logs
	virtually(t, 3, nil, func(int) *ccl.Options { return l.options(time.Minute) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			l.eventually(t, "ccl: deadlock: rank 0 in world #1 waits for 1; rank 1 in world #1 waits for 2; rank 2 in world #1 waits for 0.")
		}()
		wants(t, ccl.Recv(ctx, c, make([]int, 1), (c.Rank()+1)%3), ccl.ErrCanceled)
	})
}

// A slow rank is no deadlock, and neither are ranks that wait in a row.
func TestNoDeadlockWhereARankIsSlow(t *testing.T) {
	var l logs
	virtually(t, 3, nil, func(int) *ccl.Options { return l.options(time.Minute) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		low, err := c.Split(ctx, c.Rank()/2, 0) // 0 and 1
		require.NoError(t, err)
		defer low.Close()
		high, err := c.Split(ctx, (c.Rank()+1)/2, 0) // 1 and 2
		require.NoError(t, err)
		defer high.Close()
		switch c.Rank() {
		case 0: // waits for 1, which waits for 2, which is slow
			assert.NoError(t, sum(ctx, low))
		case 1:
			assert.NoError(t, sum(ctx, high))
			assert.NoError(t, sum(ctx, low))
		case 2:
			time.Sleep(1500 * time.Millisecond)
			assert.NoError(t, sum(ctx, high))
		}
	})
	assert.NotContains(t, l.String(), "deadlock")
}

// When a Comm fails, each rank logs its last calls, and rank 0 where all ranks of all Comms stood.
func TestFailureIsPictured(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			var l logs
			hosts := p.hosts(3)
			virtually(t, 3, hosts, func(int) *ccl.Options { return l.everything(3 * time.Second) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				part, err := c.Split(ctx, 0, 0)
				require.NoError(t, err)
				defer part.Close()
				part.SetName("part")
				meet(ctx) // no call begins before all ranks are there, and so none but the last takes long
				works(ctx, t, part)
				works(ctx, t, c)
				meet(ctx)
				if c.Rank() == 1 {
					<-c.Done()
				} else {
					wants(t, ccl.Barrier(ctx, c), ccl.ErrTimeout)
				}
				meet(ctx)
				l.eventually(t, "state at failure: part:")
			})
			world, part := "ranks 0, 2", "ranks 0, 1, 2"
			if len(hosts) > 0 && hosts[2] != hosts[0] { // each host has lines of its own
				world, part = "rank 2", "rank 2"
			}
			for _, line := range [][]string{
				{"rank 0: Comm: timed out at rank 1", "last calls of world rank 0 on host", "AllReduce #2 int64 x 2 sum complete", "Barrier #3"},
				{"last calls of world rank 1 on host", "Split #1 complete; AllReduce #2 int64 x 2 sum complete"},
				{"state at failure: world: " + world + ": waited in Barrier #3"},
				{"state at failure: world: rank 1: in no call; the last was AllReduce #2 int64 x 2 sum"},
				{"state at failure: part: " + part + ": in no call; the last was AllReduce #1 int64 x 2 sum"},
			} {
				assert.True(t, l.has(line...), "no line with %q in\n%s", line, l.String())
			}
		})
	}
}

// A report about a Comm that is still being made names the ranks that did not answer; it has no engine to ask yet.
func TestReportOfAnUnmadeComm(t *testing.T) {
	require.Equal(t, "rank 1", ccl.UnmadeInJob(1))
	require.Equal(t, "ranks 1, 3", ccl.UnmadeInJob(1, 3))
}

// A variable that cannot be read is an error, before anything is done.
func TestStallWarnThatMakesNoSense(t *testing.T) {
	for _, s := range []string{"soon", "-1", "-3s", "1e99"} {
		t.Setenv("GOCCL_STALL_WARN", s)
		_, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
		e := wants(t, err, ccl.ErrArgument)
		assert.Contains(t, e.Error(), "GOCCL_STALL_WARN="+s+": it takes a duration such as 30s, or a number of seconds; 0 means never")
	}
	for _, s := range []string{"0", "2.5", "1m", ""} {
		t.Setenv("GOCCL_STALL_WARN", s)
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
		require.NoError(t, err)
		assert.Equal(t, "world", c.Name())
		c.SetName("all of us")
		assert.Equal(t, "all of us", c.Name())
		assert.NoError(t, c.Close())
	}
}
