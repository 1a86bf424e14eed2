//go:build fault

package campaign

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// mistakes are planted, each in a package of the engine that runs in the world. What needs memory of several processes, their
// deaths or real sockets has its own tests: shm, proc, reach, region, ordered. Mail and status have none here: the two that
// were tried, in mail's way to end what a cut connection may have lost, and in what a timeout knows of the others, these jobs
// do not find.
var mistakes = []string{"ccl.seat", "plane.rejoin", "control.flood", "event.decode", "shrink.lost", "join.learn", "links.received", "rounds.await", "cpu.split", "tcp.settle", "call.code"}

// Random jobs in the world find each mistake within a thousand seeds.
func TestPlanted(t *testing.T) {
	for _, mistake := range mistakes {
		t.Run(mistake, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorld$", "-test.timeout=0", "-first", "-seeds=1-1000")
			cmd.Env = append(os.Environ(), "GOCCL_FAULT="+mistake+":1:wrong")
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s is not found", mistake)
			first := regexp.MustCompile(`(?m)^(first: .*|hangs: .*|panic: .*|fatal error: .*)$`).Find(out)
			require.NotNil(t, first, "%s", out)
			t.Logf("%.300s", first)
		})
	}
}
