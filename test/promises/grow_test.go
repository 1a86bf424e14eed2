//go:build linux

package promises

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
)

// growthPart is what the processes of the test below do, as partVar says.
const growthPart = "growth"

// TestGrowthProcess is not a test of its own: it is what the processes run, 4 workers and a spare. Whoever has the number of the victim is
// killed once a spare waits, some time after the last loss. The spare takes the number, and the process is started again and becomes the
// spare. So there are 4 ranks at every step.
func TestGrowthProcess(t *testing.T) {
	if os.Getenv(partVar) != growthPart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	with := strings.Split(argument(), ",")
	kills, _ := strconv.Atoi(with[1])
	apart, _ := time.ParseDuration(with[2])
	killed := func() int {
		files, _ := filepath.Glob(filepath.Join(with[0], "killed-*"))
		return len(files)
	}
	c, err := ccl.Join(ctx, &ccl.Options{Spares: 1, PeerTimeout: peerTimeout, Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	require.NoError(t, err)
	for since := time.Now(); ; {
		c.Restored()
		n := killed()
		x := []int{c.Rank() + 1, 0}
		if c.Rank() == 0 && n == kills && c.Waiting() == 1 {
			x[1] = 1
		}
		next := c
		if err = ccl.AllReduce(ctx, c, x, x, ccl.Sum); err == nil {
			require.Equal(t, 1+2+3+4, x[0])
			if x[1] > 0 {
				break
			}
			if c.Rank() == victim && c.Waiting() == 1 && n < kills && time.Since(since) >= apart {
				require.NoError(t, os.WriteFile(filepath.Join(with[0], fmt.Sprint("killed-", n)), nil, 0o600))
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			time.Sleep(time.Millisecond)
			began := time.Now()
			if next, err = ccl.Grow(ctx, c, 4); err == nil && next != c && c.Rank() == 0 {
				fmt.Printf("pause %d\n", time.Since(began))
			}
		}
		if err != nil {
			require.ErrorIs(t, err, ccl.ErrRankLost)
			next, err = c.Replace(ctx)
			require.NoError(t, err)
		}
		if next != c {
			c.Close()
			c, since = next, time.Now()
		}
	}
	c.Close()
}

// A rank is killed, replaced, started again by the launcher, and taken in as the next spare: there are always as many ranks, and a step in
// which one is taken in is held up for a moment.
func TestR20GrowthPause(t *testing.T) {
	const what, promise = "a killed rank is started again, and taken in as a spare: the step is held up for", 200 * time.Millisecond
	kills, apart := times(2, 3), time.Duration(0)
	if *write {
		apart = 5 * time.Second
	}
	out, err := program.Itself(t, 3*time.Minute, boot.Command{N: 5, Restart: 2}, "TestGrowthProcess", partVar+"="+growthPart, fmt.Sprintf("%s_ARG=%s,%d,%v", partVar, t.TempDir(), kills, apart))
	require.NotContains(t, out, "--- FAIL")
	var e *boot.ExitError
	require.ErrorAs(t, err, &e)
	require.Equal(t, []int{5, 1, kills}, []int{e.Well, e.Unused, e.Restarted}, "well, unused, restarted:\n%s", out)
	var took []time.Duration
	for _, m := range regexp.MustCompile(`pause (\d+)`).FindAllStringSubmatch(out, -1) {
		ns, _ := strconv.Atoi(m[1])
		took = append(took, time.Duration(ns))
	}
	require.GreaterOrEqual(t, len(took), kills, out)
	middle, largest := spread(took)
	record(t, 20, "R20", what, "≤ "+promise.String(), "median %v, max %v (%d kills, %v apart)", round(middle), round(largest), kills, apart)
	asserted(t, what, largest, promise)
}
