package ccl_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() { roles["loss log"] = losesRank3 }

// losesRank3: rank 3 is killed while all make calls.
func losesRank3(ctx context.Context, t *testing.T, _ string) {
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
		{0, "error", 0, false},
		{0, "info", 1, false},
		{0, "debug", 1, true},
		{0, "all", 1, true},
	} {
		t.Run(tc.log, func(t *testing.T) {
			out := processes(t, 8, tc.hosts, "loss log", "", "GOCCL_LOG="+tc.log)
			warns, debugs := 0, 0
			for line := range strings.Lines(out) {
				if strings.Contains(line, "WARN ccl: ") {
					assert.LessOrEqual(t, len(strings.TrimSpace(line)), 120, line)
				}
			}
			for _, m := range warning.FindAllStringSubmatch(out, -1) {
				if m[1] == "WARN" {
					warns++
				} else {
					debugs++
				}
			}
			assert.Equal(t, tc.warnings, warns, out)
			assert.Equal(t, tc.withDebug, debugs > 0, out)
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
