package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestLossLogProcess is not a test of its own: it is what the processes run that the tests below start. Rank 3 is killed.
func TestLossLogProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_LOSS_LOG") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	c, err := ccl.Join(ctx, nil)
	require.NoError(t, err)
	part, err := c.Split(ctx, 0, 0)
	require.NoError(t, err)
	word := []int32{0}
	if c.Rank() != 3 { // it is not to be killed before all have returned from Split
		require.NoError(t, ccl.Send(ctx, c, word, 3))
	} else {
		for _, r := range []int{0, 1, 2, 4, 5, 6, 7} {
			require.NoError(t, ccl.Recv(ctx, c, word, r))
		}
		killSelf()
	}
	wants(t, callOn(ctx, part), ccl.ErrRankLost)
	<-c.Done()
	c.Close()
	part.Close()
}

var warning = regexp.MustCompile(`(?m)^.*(WARN|DEBUG) ccl: .*$`)

// A lost rank costs one warning on each host, however many ranks and Comms have it; GOCCL_LOG says how much is logged, in any
// program.
func TestOneWarningAHost(t *testing.T) {
	for _, tc := range []struct {
		hosts     int
		log       string
		warnings  int
		withDebug bool
	}{
		{0, "", 1, false},
		{2, "", 2, false},
		{0, "quiet", 0, false},
		{0, "all", 1, true},
	} {
		t.Run(tc.log, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			var out bytes.Buffer
			boot.Spawn(ctx, boot.Command{N: 8, Hosts: tc.hosts, Path: os.Args[0], KeepGoing: true, Args: []string{"-test.run=^TestLossLogProcess$"},
				Env: append(os.Environ(), "CCL_TEST_LOSS_LOG=1", "GOCCL_LOG="+tc.log, "GORACE=atexit_sleep_ms=0"), Stdout: &out, Stderr: &out})
			require.NoError(t, ctx.Err(), "%s", &out)
			warns, debugs := 0, 0
			for _, m := range warning.FindAllStringSubmatch(out.String(), -1) {
				if m[1] == "WARN" {
					warns++
				} else {
					debugs++
				}
			}
			assert.Equal(t, tc.warnings, warns, "%s", &out)
			assert.Equal(t, tc.withDebug, debugs > 0, "%s", &out)
			assert.NotContains(t, out.String(), "FAIL")
		})
	}
}

// A failure that a program has asked for is logged where everything is.
func TestAbortIsNoWarning(t *testing.T) {
	var l logs
	all := pair(t, func(int) *ccl.Options { return l.options(0) })
	all[0].Abort(errors.New("enough"))
	<-all[1].Done()
	all[0].Close()
	all[1].Close()
	assert.Empty(t, l.String())
}
