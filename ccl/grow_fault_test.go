//go:build fault && linux

package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/inject"
)

// TestGrowFaultProcess is not a test of its own: it is what the processes run that the test below starts, 3 workers and 2 spares. Rank 2
// is killed, a spare takes its number, and it comes back. The Grow that takes it in meets the fault, in one process.
func TestGrowFaultProcess(t *testing.T) {
	plan := os.Getenv("CCL_TEST_GROW")
	if plan == "" || os.Getenv("CCL_TEST_SIZE") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	who, point, _ := strings.Cut(plan, "@")
	dir, id := os.Getenv("CCL_TEST_DIR"), os.Getenv("GOCCL_RANK")+os.Getenv("GOCCL_NEWCOMER")
	started(t, dir)
	harm := func(when string) {
		if who == when {
			require.NoError(t, inject.Plan(point))
			who = ""
		}
	}
	switch id {
	case "4":
		harm("spare")
	case "2.1":
		harm("newcomer")
	}
	c, err := ccl.Join(ctx, nil)
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	require.NoError(t, err)
	starts, _ := strconv.Atoi(os.Getenv("CCL_TEST_STARTS"))
	c = grown(ctx, t, c, 3, func(c *ccl.Comm) bool {
		time.Sleep(time.Millisecond)
		if files(dir, "killed") == 0 {
			if id == "2" && c.Waiting() == 2 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "killed"), nil, 0o600))
				killSelf()
			}
			return false
		}
		switch id {
		case "0":
			harm("lead")
		case "1":
			harm("worker")
		}
		return c.Rank() == 0 && c.Size() == 3 && c.Waiting() == 2 && files(dir, "started-*") == starts
	})
	defer c.Close()
	fmt.Printf("number %d of %v\n", c.Rank(), members(t, c, c.Rank()))
}

// A process is killed at each point of a Grow: the lead, another rank, a spare that is taken along, a newcomer. The others are held up
// by nobody, whether the meeting counts or not, and once the process is back all are there. A process that is stopped for a while is
// waited for.
func TestGrowAtEachPoint(t *testing.T) {
	guest := []string{"guest.seated", "grow.met", "grow.pool", "grow.voted", "grow.decided"}
	member := []string{"grow.told", "grow.met", "grow.pool", "grow.voted", "grow.decided", "grow.made"}
	for who, points := range map[string][]string{
		"lead":     append([]string{"grow.called", "grow.seated"}, member...),
		"worker":   member,
		"spare":    guest,
		"newcomer": append([]string{"guest.waits", "guest.called"}, guest...),
	} {
		for i, point := range points {
			if testing.Short() && i%3 != 1 {
				continue
			}
			actions := []string{"kill"}
			if i == 3 && !testing.Short() {
				actions = append(actions, "stop:300ms")
			}
			for _, action := range actions {
				t.Run(fmt.Sprintf("%s, %s, %s", who, point, action), func(t *testing.T) {
					t.Parallel()
					starts := 7 // the killed rank 2 and the victim come back
					if action != "kill" {
						starts = 6
					}
					text, err := growFault(t, fmt.Sprintf("%s@%s:1:%s", who, point, action), starts)
					var e *boot.ExitError
					require.ErrorAs(t, err, &e, text)
					require.Equal(t, []int{5, 0, starts - 5}, []int{e.Well, e.Failed, e.Restarted}, "well, failed, restarted: %v\n%s", err, text)
					for n := range 3 {
						require.Regexp(t, fmt.Sprintf(`number %d of \[0 1 2\]`, n), text)
					}
				})
			}
		}
	}
}

func growFault(t *testing.T, plan string, starts int) (string, error) {
	return growProcesses(t, "TestGrowFaultProcess", 3, 2, 0, "CCL_TEST_GROW="+plan, fmt.Sprintf("CCL_TEST_STARTS=%d", starts))
}
