package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
)

// grown is the loop of a job that grows: steps that have an exact sum, a Grow to n ranks after each, and, where a rank is lost, Replace
// or Shrink, until before says on some rank that it is enough.
func grown(ctx context.Context, t testing.TB, c *ccl.Comm, n int, before func(c *ccl.Comm) (enough bool)) *ccl.Comm {
	t.Helper()
	step := 0
	err := restored(ctx, c, &step)
	for {
		for err == nil {
			x := []int{c.Rank() + 1, 0}
			if before(c) {
				x[1] = 1
			}
			if err = ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
				break
			}
			require.Equal(t, c.Size()*(c.Size()+1)/2, x[0], "step %d", step)
			if step++; x[1] > 0 {
				return c
			}
			var next *ccl.Comm
			if next, err = ccl.Grow(ctx, c, n); err == nil && next != c {
				require.Equal(t, n, next.Size())
				require.Equal(t, c.Rank(), next.Rank())
				require.NoError(t, c.Close())
				c = next
				err = restored(ctx, c, &step)
			}
		}
		require.ErrorIs(t, err, ccl.ErrRankLost)
		next, failed := c.Replace(ctx)
		var e *ccl.Error
		if errors.As(failed, &e) && (e.Code == ccl.ErrUnsupported || e.Code == ccl.ErrRankLost && len(e.Missing) > 0) {
			next, failed = c.Shrink(ctx)
		}
		require.NoError(t, failed)
		c.Close()
		c = next
		err = restored(ctx, c, &step)
	}
}

// files counts what is in a directory of the test.
func files(dir, pattern string) int {
	all, _ := filepath.Glob(filepath.Join(dir, pattern))
	return len(all)
}

// started says in dir that this process runs.
func started(t testing.TB, dir string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir, "started-"+os.Getenv("GOCCL_RANK")+os.Getenv("GOCCL_NEWCOMER")), nil, 0o600))
}

// TestGrowProcess is not a test of its own: it is what the processes run that the tests below start. One number after the other is
// killed, as soon as all are there again.
func TestGrowProcess(t *testing.T) {
	plan := os.Getenv("CCL_TEST_GROW")
	if plan == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	dir, victims := os.Getenv("CCL_TEST_DIR"), strings.Split(plan, ",")
	size, _ := strconv.Atoi(os.Getenv("CCL_TEST_SIZE"))
	spares, _ := strconv.Atoi(os.Getenv("GOCCL_SPARES"))
	started(t, dir)
	c, err := ccl.Join(ctx, nil)
	if errors.Is(err, ccl.ErrUnused) {
		fmt.Println("unused")
		return
	}
	require.NoError(t, err)
	c = grown(ctx, t, c, size, func(c *ccl.Comm) bool {
		time.Sleep(time.Millisecond)
		if c.Size() < size || c.Waiting() < spares {
			return false
		}
		killed := files(dir, "killed-*")
		if files(dir, "started-*") < size+spares+killed { // this rank has not heard of the last loss, perhaps
			return false
		}
		if killed < len(victims) && victims[killed] == strconv.Itoa(c.Rank()) {
			assert.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("killed-", killed)), nil, 0o600))
			killSelf()
		}
		return c.Rank() == 0 && killed == len(victims)
	})
	defer c.Close()
	fmt.Printf("number %d of %v\n", c.Rank(), members(t, c, c.Rank()))
}

// growProcesses runs size workers and spares as processes of test, which are started again, and returns what they say, and how they ended.
func growProcesses(t *testing.T, test string, size, spares, hosts int, env ...string) (string, error) {
	t.Helper()
	text, err := program.Itself(t, 2*long, boot.Command{N: size + spares, Hosts: hosts, Restart: 3, Prefix: true}, test,
		append(env, "CCL_TEST_DIR="+t.TempDir(), fmt.Sprintf("CCL_TEST_SIZE=%d", size), fmt.Sprintf("GOCCL_SPARES=%d", spares))...)
	require.NotRegexp(t, regexp.MustCompile(`SIGSEGV|SIGBUS|fatal error|FAIL|panic`), text)
	return text, err
}

// A rank after the other is killed, the lead among them. Each is started again, and taken in: as a spare where one has taken its number,
// or under a number that is free. At the end all are there, and every sum was exact.
func TestGrowAfterKills(t *testing.T) {
	for _, tc := range []struct {
		size, spares, hosts int
		victims             string
		kills               int
	}{
		{3, 1, 0, "1,2,0", 3}, {3, 0, 0, "1,0", 2}, {3, 1, 2, "0,2", 2},
	} {
		t.Run(fmt.Sprintf("%d+%d on %d hosts, %s", tc.size, tc.spares, max(tc.hosts, 1), tc.victims), func(t *testing.T) {
			t.Parallel()
			text, err := growProcesses(t, "TestGrowProcess", tc.size, tc.spares, tc.hosts, "CCL_TEST_GROW="+tc.victims)
			var e *boot.ExitError
			require.ErrorAs(t, err, &e, text)
			require.Equal(t, []int{tc.size + tc.spares, tc.spares, 0, tc.kills}, []int{e.Well, e.Unused, e.Failed, e.Restarted}, "well, unused, failed, restarted: %v\n%s", err, text)
			for n := range tc.size {
				require.Regexp(t, fmt.Sprintf(`number %d of \[0 1 2\]`, n), text)
			}
			require.Equal(t, tc.spares, strings.Count(text, "unused"), text)
		})
	}
}
