//go:build fault && linux

package cpu

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

// A Split that is refused, since a rank cannot map the memory, leaves nothing behind, and the Comm goes on.
func TestRefusedSplitsLeaveNothing(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	world := twoOfAHost(t)
	h := world[0].rank.Site.Here.Host
	var space, memory, maps int
	for i := range n {
		if i == 10 {
			space, memory, maps = unusedBy(h), takenBy(t, h), mappings(t)
		}
		require.NoError(t, inject.Plan("cpu.map:1:cut"))
		each(t, world[:], func(c *Comm) error {
			_, f := Split(t.Context(), c, &call.Call{Head: op.Head{Record: call.Record{Kind: call.Split, Root: -1}}}, 0, 0, plane.Options{})
			if f == nil || f.Code != call.Backend {
				return fmt.Errorf("not refused: %v", f)
			}
			return nil
		})
	}
	require.Equal(t, space, unusedBy(h))
	require.Equal(t, memory, takenBy(t, h))
	require.Equal(t, maps, mappings(t))
}

// A Subset that is refused, since a rank cannot map the memory, or make it, leaves nothing behind either.
func TestRefusedSubsetsLeaveNothing(t *testing.T) {
	c := twoOfAHost(t)
	h := c[0].rank.Site.Here.Host
	c[0].rank.Site.Job.StartMonitor()
	mails := mailsOf(t, c)
	space, memory := unusedBy(h), takenBy(t, h)
	for i := range 100 {
		require.NoError(t, inject.Plan([]string{"cpu.map:1:cut", "cpu.reserve:1:cut"}[i%2]))
		each(t, c[:], func(c *Comm) error {
			_, f := Subset(t.Context(), c, mails[c.Rank()], []int{1, 0}, 0, plane.Options{})
			if f == nil || f.Code != call.Backend {
				return fmt.Errorf("not refused: %v", f)
			}
			return nil
		})
		// It goes back aside, where the next fault might strike.
		require.Eventually(t, func() bool { return unusedBy(h) >= space && takenBy(t, h) <= memory }, 20*time.Second, time.Millisecond)
	}
}

// mappings counts this process's mappings of shared memory.
func mappings(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(text), "memfd:goccl")
}
