//go:build fault && linux

package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/inject"
)

func init() { roles["news"] = hearsNews }

// hearsNews: rank 3 is killed between the claim of a slot of the host's log and its stamp; then rank 2 is killed, and rank 0 aborts
// a Comm.
func hearsNews(ctx context.Context, t *testing.T, _ string) {
	world, err := ccl.Join(ctx, &ccl.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	split := func(in bool) *ccl.Comm {
		color := 0
		if !in {
			color = 1
		}
		c, err := world.Split(ctx, color, world.Rank())
		require.NoError(t, err)
		return c
	}
	all, few, two := split(true), split(world.Rank() < 3), split(world.Rank() < 2)
	require.NoError(t, ccl.Barrier(ctx, world))
	heard := func(what string, c *ccl.Comm) {
		select {
		case <-c.Done():
		case <-ctx.Done(): // test/promises asserts how soon
			t.Fatalf("rank %d has not heard of %s", world.Rank(), what)
		}
		fmt.Printf("rank %d: %s: %v\n", world.Rank(), what, c.Err())
	}
	if world.Rank() == 3 {
		require.NoError(t, inject.Plan("cpu.log:1:kill"))
		all.Abort(errors.New("the first"))
		t.Fatal("not killed")
	}
	heard("death 1", world)
	if world.Rank() == 2 {
		time.Sleep(100 * time.Millisecond)
		killSelf()
	}
	heard("death 2", few)
	if world.Rank() == 0 {
		two.Abort(errors.New("the second"))
	}
	heard("abort", two)
}

func TestKilledWhileItWritesTheLog(t *testing.T) {
	text := processes(t, 4, 0, "news", "")
	for _, want := range []string{"rank 0: death 1: ", "rank 1: death 1: ", "rank 2: death 1: ", "rank 0: death 2: ", "rank 1: death 2: ",
		"rank 0: abort: ", "rank 1: abort: "} {
		require.Equal(t, 1, strings.Count(text, want), "%s in\n%s", want, text)
	}
	require.Contains(t, text, "the second")
	for l := range strings.Lines(text) {
		if strings.Contains(l, "death 1") {
			require.Contains(t, l, "rank 3", text)
		}
	}
}
