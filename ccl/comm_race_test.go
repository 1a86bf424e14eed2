//go:build race

package ccl_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// Two goroutines on one Comm are a data race, whatever they call: the detector says
// so, in a process of its own.
func TestTwoGoroutinesAreReported(t *testing.T) {
	uses := map[string]func(ctx context.Context, c *ccl.Comm){
		"collective": func(ctx context.Context, c *ccl.Comm) { ccl.Barrier(ctx, c) },
		"queue":      func(ctx context.Context, c *ccl.Comm) { c.On(nil).Barrier().Wait(ctx) },
		"split":      func(ctx context.Context, c *ccl.Comm) { c.Split(ctx, -1, 0) },
		"refused":    func(ctx context.Context, c *ccl.Comm) { ccl.Broadcast(ctx, c, []int{1}, 99) },
	}
	if use := uses[os.Getenv("CCL_TEST_RACE")]; use != nil {
		c, err := ccl.NewComm(t.Context(), alone{}, nil)
		assert.NoError(t, err)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { use(t.Context(), c) })
		}
		wg.Wait()
		return
	}
	for name := range uses {
		t.Run(name, func(t *testing.T) {
			// The two may well block each other: what counts is what was said before.
			cmd := exec.Command(os.Args[0], "-test.run=^TestTwoGoroutinesAreReported$", "-test.timeout=3s")
			cmd.Env = append(os.Environ(), "CCL_TEST_RACE="+name, "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			assert.Error(t, err)
			assert.Contains(t, string(out), "DATA RACE")
		})
	}
}
