package mirror

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// play runs j as goroutines, with spares, and with what opts do to them.
func play(t *testing.T, j toy, spares int, opts ...ccltest.Option) []outcome {
	if j.at == nil {
		j.at = func(int, int, string) {}
	}
	var mu sync.Mutex
	var got []outcome
	ccltest.Run(t, j.n+spares, func(t testing.TB, c *ccl.Comm) {
		role, state, err := j.run(t.Context(), c)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, outcome{c.Rank(), role, state, err})
	}, append(opts, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))...)
	return got
}

// A run that nobody disturbs has the states that arithmetic says, in every layout.
func TestUndisturbed(t *testing.T) {
	same := func(int) int { return 0 }
	for _, c := range []struct {
		name string
		j    toy
		opts []ccltest.Option
	}{
		{"one rank", toy{n: 1, steps: 4}, nil},
		{"two ranks", toy{n: 2, steps: 4}, nil},
		{"hosts", toy{n: 4, steps: 4}, []ccltest.Option{ccltest.Hosts(2)}},
		{"every third", toy{n: 3, steps: 7, o: Options{Every: 3}}, nil},
		{"two away", toy{n: 3, steps: 4, o: Options{Away: 2}}, nil},
		{"replicas", toy{n: 3, steps: 4, alike: true, o: Options{Shard: same}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.j.judge(play(t, c.j, 0, c.opts...)))
		})
	}
}

// Whichever rank dies before whichever of its calls, a spare goes on with its state, and all ranks
// have the states of an undisturbed run.
func TestKilledAnywhere(t *testing.T) {
	same := func(int) int { return 0 }
	for _, c := range []struct {
		name string
		j    toy
	}{
		{"mirrored", toy{n: 3, steps: 4}},
		{"every second", toy{n: 3, steps: 5, o: Options{Every: 2}}},
		{"replicas", toy{n: 3, steps: 4, alike: true, o: Options{Shard: same}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const last = 32 // a rank makes fewer
			for rank := range c.j.n {
				for nth := 1; nth <= last; nth++ {
					if testing.Short() && (rank+nth)%3 > 0 {
						continue
					}
					t.Run(fmt.Sprintf("rank %d before call %d", rank, nth), func(t *testing.T) {
						t.Parallel()
						require.NoError(t, c.j.judge(play(t, c.j, 1, ccltest.Kill(rank, nth)), rank))
					})
				}
			}
		})
	}
}
