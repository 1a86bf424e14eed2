package launch

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// jobs makes ranks of processes x n that are all in this process.
func jobs(processes, n int) []ccl.Bootstrap {
	one := Threads(single{}, processes) // stands in for the processes' bootstrap
	var all []ccl.Bootstrap
	for _, p := range one {
		all = append(all, Threads(p, n)...)
	}
	return all
}

// single is a job of one process.
type single struct{}

func (single) Rank() int { return 0 }
func (single) Size() int { return 1 }
func (single) AllGather(_ context.Context, mine []byte) ([][]byte, error) {
	return [][]byte{mine}, nil
}

func TestThreadsAllGather(t *testing.T) {
	for _, tc := range []struct{ processes, n int }{{1, 1}, {1, 4}, {2, 2}, {3, 5}} {
		t.Run(fmt.Sprintf("%dx%d", tc.processes, tc.n), func(t *testing.T) {
			ranks := jobs(tc.processes, tc.n)
			var wg sync.WaitGroup
			for want, b := range ranks {
				wg.Go(func() {
					if b.Rank() != want || b.Size() != len(ranks) {
						t.Errorf("rank %d of %d, want %d", b.Rank(), b.Size(), want)
					}
					for round := range 3 {
						mine := []byte(fmt.Sprintf("%d/%d", want, round))
						if want%2 == 1 {
							mine = nil // nothing is a value, too
						}
						all, err := b.AllGather(t.Context(), mine)
						if err != nil || len(all) != len(ranks) {
							t.Errorf("%d values, %v", len(all), err)
							return
						}
						for r, v := range all {
							if r%2 == 0 && string(v) != fmt.Sprintf("%d/%d", r, round) || r%2 == 1 && len(v) != 0 {
								t.Errorf("rank %d got %q from %d in round %d", want, v, r, round)
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestThreadsEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Threads(single{}, 2)[0].AllGather(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}
