//go:build fault && linux

package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	inject "github.com/goccl/goccl/ccl/internal/fault"
)

// TestLogProcess is not a test of its own: it is what the processes of the test below run. Rank 3 is killed between
// the claim of a slot of the host's log and its stamp; then rank 2 is killed, and rank 0 aborts a Comm.
func TestLogProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_LOG") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
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
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	heard("death 2", few)
	if world.Rank() == 0 {
		two.Abort(errors.New("the second"))
	}
	heard("abort", two)
}

func TestKilledWhileItWritesTheLog(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var out bytes.Buffer
	boot.Spawn(ctx, boot.Command{N: 4, Path: os.Args[0], KeepGoing: true, Args: []string{"-test.run=^TestLogProcess$"},
		Env: append(os.Environ(), "CCL_TEST_LOG=1", "GORACE=atexit_sleep_ms=0"), Stdout: &out, Stderr: &out})
	text := out.String()
	require.NoError(t, ctx.Err(), text)
	require.NotContains(t, text, "--- FAIL")
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
