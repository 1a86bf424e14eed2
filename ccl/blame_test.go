package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// In blameVariable: rank 0 aborts, or it is late.
const (
	blameVariable = "GOCCL_TEST_BLAME"
	blameAbort    = "abort"
	blameLate     = "late"
)

// TestBlameProcess is a rank of TestTheLauncherNamesTheCulprit: rank 0 is the cause, and the last to
// end.
func TestBlameProcess(t *testing.T) {
	if os.Getenv(blameVariable) == "" {
		return // run by TestTheLauncherNamesTheCulprit, in processes of its own
	}
	world, err := ccl.Join(t.Context(), &ccl.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Second})
	require.NoError(t, err)
	if os.Getenv(blameVariable) == blameLate {
		if world.Rank() == 0 {
			io.ReadAll(os.Stdin) // it comes when the others have given up
			os.Exit(5)
		}
		if err := ccl.Barrier(t.Context(), world); errors.Is(err, ccl.ErrTimeout) {
			fmt.Println("failed")
		}
		os.Exit(1)
	}
	sub, err := world.Split(t.Context(), world.Rank()/2, world.Rank())
	require.NoError(t, err)
	if world.Rank() == 0 {
		sub.Abort(errors.New("a bug of mine"))
		world.Abort(errors.New("a bug of mine"))
		io.ReadAll(os.Stdin)               // until the others have had their errors
		time.Sleep(200 * time.Millisecond) // and have ended, as a rule
		os.Exit(5)
	}
	if err := ccl.Barrier(context.Background(), world); errors.Is(err, ccl.ErrAborted) {
		fmt.Println("failed")
	}
	os.Exit(1)
}

// counted calls f once it has been written a word so many times.
type counted struct {
	word string
	left int
	f    func()
}

func (c *counted) Write(p []byte) (int, error) {
	n := strings.Count(string(p), c.word)
	if c.left -= n; n > 0 && c.left <= 0 {
		c.f()
	}
	return len(p), nil
}

// The launcher names the rank that the others hold to be the cause, not the one that ended first.
func TestTheLauncherNamesTheCulprit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, how := range []string{blameAbort, blameLate} {
		for _, keepGoing := range []bool{true, false} {
			in, toRank0 := io.Pipe()
			seen := &counted{word: "failed", left: 3, f: func() { toRank0.Close() }}
			err := boot.Spawn(ctx, boot.Command{N: 4, Stdin: in, Stdout: seen, Path: os.Args[0], Args: []string{"-test.run=^TestBlameProcess$"}, Env: append(os.Environ(), blameVariable+"="+how),
				KeepGoing: keepGoing, Grace: 10 * time.Second})
			var exit *boot.ExitError
			require.ErrorAs(t, err, &exit)
			if keepGoing {
				require.Equal(t, 0, exit.Rank, "%s: %v", how, err)
				require.Equal(t, 5, exit.Code)
			} else { // rank 0 may have been ended before it could end by itself
				named, ok := exit.Named()
				require.True(t, exit.Rank == 0 && exit.Code == 5 || ok && named == 0, "%s: %v", how, err)
			}
			toRank0.Close()
		}
	}
}
