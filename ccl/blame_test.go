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

func init() { roles["blame"] = blamed }

// blamed is a rank of TestTheLauncherNamesTheCulprit: rank 0, which aborts or is late, is the cause, and the last to end.
func blamed(_ context.Context, t *testing.T, how string) {
	world, err := ccl.Join(t.Context(), &ccl.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Second})
	require.NoError(t, err)
	if how == "late" {
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
	for _, how := range []string{"abort", "late"} {
		for _, keepGoing := range []bool{true, false} {
			in, toRank0 := io.Pipe()
			seen := &counted{word: "failed", left: 3, f: func() { toRank0.Close() }}
			c := command(4, 0, "blame", how)
			c.Stdin, c.Stdout, c.KeepGoing, c.Grace = in, seen, keepGoing, 10*time.Second
			err := boot.Spawn(ctx, c)
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
