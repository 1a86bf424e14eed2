package ccl_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

var quietly = slog.New(slog.DiscardHandler)

// A host that is cut off while the job begins keeps its neighbors waiting. None of these is taken for silent meanwhile.
func TestNewCommWaitsForACut(t *testing.T) {
	ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) {
		ccltest.Barrier(t, c)
	}, ccltest.Hosts(5), ccltest.With(ccl.Options{PeerTimeout: 2 * time.Second, Log: quietly}),
		ccltest.World(1, simnet.Link{Delay: time.Millisecond}, func(_ context.Context, n *simnet.Net) {
			n.CutOff(4, true)
			time.Sleep(8 * time.Second)
			n.CutOff(4, false)
		}))
}

// Where there are too few spares, all hear it soon, however long their words take: those that have heard it and call
// Shrink do not keep it from the others.
func TestTooFewSparesOnFarHosts(t *testing.T) {
	for seed := range uint64(20) {
		ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) {
			for ccl.Barrier(t.Context(), c) == nil {
				time.Sleep(time.Millisecond)
			}
			if c.Rank() == 2 || c.Rank() == 3 {
				return
			}
			began := time.Now()
			_, err := c.Replace(t.Context())
			require.ErrorContains(t, err, "spares left: 1, ranks lost: 2; Shrink goes on without them")
			less, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer less.Close()
			require.Equal(t, 3, less.Size())
			require.Less(t, time.Since(began), 3*time.Second)
		}, ccltest.Spares(1), ccltest.Hosts(3), ccltest.With(ccl.Options{Timeout: 10 * time.Second, PeerTimeout: 2 * time.Second, Log: quietly}),
			ccltest.World(seed, simnet.Link{Delay: 5 * time.Millisecond, Jitter: 3 * time.Millisecond}, func(_ context.Context, n *simnet.Net) {
				time.Sleep(time.Second)
				n.Host(1).Kill(false)
			}))
	}
}

// A connection between two living hosts is reset, whichever it is: where no call was to use it nothing fails, and else all
// ranks have the same cause.
func TestResetBetweenLivingHosts(t *testing.T) {
	for seed := range uint64(12) {
		var mu sync.Mutex
		causes := map[string][]int{}
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			for range 200 { // five seconds
				x := []int{1}
				if ccl.AllReduce(t.Context(), c, x, x, ccl.Sum) != nil {
					break
				}
			}
			text := fmt.Sprint(c.Err())
			if err := c.Err(); err != nil {
				_, text, _ = strings.Cut(text, "Comm: ")
			}
			mu.Lock()
			defer mu.Unlock()
			causes[text] = append(causes[text], c.Rank())
		}, ccltest.Hosts(4), ccltest.With(ccl.Options{PeerTimeout: 2 * time.Second, Log: quietly}),
			ccltest.World(seed, simnet.Link{Delay: 5 * time.Millisecond, Jitter: 2 * time.Millisecond}, func(_ context.Context, n *simnet.Net) {
				time.Sleep(time.Second)
				n.Reset(0, 2, int(seed))
			}))
		require.Len(t, causes, 1, "seed %d: %v", seed, causes)
	}
}
