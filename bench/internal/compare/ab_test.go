package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/stat"
)

// machine simulates launches on a noisy machine: each has a level of its own, which is
// shared by its lines; the machine drifts; now and then a launch is much slower; lines
// scatter. new is slower by factor.
func machine(seed uint64, factor float64) *trial {
	r := rand.New(rand.NewPCG(seed, 7))
	clock := time.Unix(0, 0)
	launch := 0.0
	return &trial{
		rounds: 80, budget: 50 * time.Second, enough: narrow, leeway: .05,
		now:  func() time.Time { return clock },
		draw: r.IntN,
		tell: func(int, float64) {},
		start: func(_ context.Context, side int) (run, error) {
			clock = clock.Add(300 * time.Millisecond) // 80 rounds in 48 s
			launch++
			level := 0.08*r.NormFloat64() + 0.2*math.Sin(launch/9)
			if r.IntN(15) == 0 {
				level += r.ExpFloat64()
			}
			if side == 1 {
				level += math.Log(factor)
			}
			times := run{}
			for size := 8; size <= 1<<20; size *= 8 {
				for _, inPlace := range []bool{false, true} {
					line := level + 0.1*r.NormFloat64() + math.Log(float64(size)/1e3+1)
					times[key{op: "allreduce", size: size, inPlace: inPlace}] = line
				}
			}
			return times, nil
		},
	}
}

// A slowdown of a tenth is found in at least 18 of 20 trials, each within a minute. TestTwinsInTurns has a program against itself.
func TestTrials(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		trial := machine(100+seed, 1.1)
		r, err := trial.run(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, trial.now().Sub(time.Unix(0, 0)), time.Minute)
		if r.verdict() == slower {
			found++
		}
	}
	require.GreaterOrEqual(t, found, 18)
}

// A change of large messages alone is found, and told apart from the rest; so is one
// for the better beside one for the worse.
func TestParts(t *testing.T) {
	for _, tc := range []struct {
		small, large float64
		verdict      string
		missed       bool
		want         []string
	}{
		{1, 1.3, slower, true, []string{"allreduce up to 4 KiB: ", "\nallreduce in between: slower: time +", "\nslower: time "}},
		{1.3, 1, slower, true, []string{"allreduce up to 4 KiB: slower: time +"}},
		{0.7, 1.3, mixed, true, []string{"\nslower and faster: time "}},
		{1, 0.7, faster, false, []string{"\nallreduce in between: faster: time -"}},
		{0.5, 0.5, faster, false, []string{"\nfaster: time -"}},
	} {
		trial := machine(3, 1)
		start := trial.start
		trial.start = func(ctx context.Context, side int) (run, error) {
			times, err := start(ctx, side)
			for k := range times {
				factor := tc.small
				if k.size > 4<<10 {
					factor = tc.large
				}
				times[k] += float64(side) * math.Log(factor)
			}
			return times, err
		}
		r, err := trial.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.verdict, r.verdict(), r)
		require.Equal(t, tc.missed, r.outcome().worse, r)
		for _, want := range tc.want {
			require.Contains(t, r.String(), want)
		}
	}
}

// A machine without noise needs no more than the fewest rounds.
func TestQuietMachine(t *testing.T) {
	trial := machine(1, 1)
	trial.start = func(_ context.Context, side int) (run, error) {
		return run{{op: "allreduce", size: 8}: float64(side) * math.Log(1.03)}, nil
	}
	r, err := trial.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, leastRounds, r.rounds)
	require.Equal(t, "slower: time +3.0 % (95 % interval +3.0 % to +3.0 %), 10 rounds of 1 lines", r.String())
	require.Equal(t, outcome{}, r.outcome(), "below the threshold")
	trial.leeway = .02
	r, err = trial.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, outcome{worse: true}, r.outcome())
}

func TestEnough(t *testing.T) {
	for threshold, want := range map[float64]float64{.05: .02, 1: .02, .02: .01, 0: .002, .001: .002} {
		require.Equal(t, want, newTrial(10, time.Second, threshold, [2]*program{}).enough, threshold)
	}
}

func TestTrialFails(t *testing.T) {
	trial := machine(1, 1)
	trial.start = func(context.Context, int) (run, error) { return nil, errors.New("no ranks") }
	_, err := trial.run(t.Context())
	require.EqualError(t, err, "no ranks")
	trial.start = func(_ context.Context, side int) (run, error) { return run{{size: side}: 1}, nil }
	_, err = trial.run(t.Context())
	require.EqualError(t, err, "the two have no line in common")
}

// Where the interval that is shown excludes no change, and nothing can be told, the one that decides is shown.
func TestDecidingInterval(t *testing.T) {
	r := &result{rounds: 12, lines: 1, all: stat.Interval{Estimate: .11, Low: .02, High: .22}}
	r.parts = []*part{{change: change{apart: true, shown: r.all, decide: stat.Interval{Estimate: .11, Low: -.01, High: .25}}}}
	require.Contains(t, r.String(), "cannot tell: time +11.6 % (95 % interval +2.0 % to +24.6 %), 12 rounds of 1 lines; what decides is the 99 % interval, -1.0 % to +28.4 %; less than ")
	r.parts[0].decide.Low = .01
	require.NotContains(t, r.String(), "what decides", "it is told")
}

// A headline contradicts no interval: "no change" stands where the interval lies within the threshold, else it cannot be told.
func TestCannotTell(t *testing.T) {
	for _, tc := range []struct {
		noise, leeway float64
		verdict       string
		strict        int
	}{
		{.001, .05, noChange, 0}, // +-0.1 % around the same
		{.3, .05, cannotTell, 4},
		{.3, 5, noChange, 0},
		{.001, 0, cannotTell, 4}, // an interval has some width
	} {
		trial := machine(1, 1)
		calls := 0
		trial.leeway = tc.leeway
		trial.start = func(_ context.Context, side int) (run, error) {
			calls++ // two a round: NEW is now slower, now faster, by up to 5
			return run{{op: "allreduce", size: 8}: float64(side) * tc.noise * float64((calls-1)/2*7%11-5)}, nil
		}
		found, err := trial.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.verdict, found.verdict(), "%+v: %v", tc, found)
		require.True(t, strings.HasPrefix(found.String(), tc.verdict+": "), found)
		require.Zero(t, found.outcome().status(false))
		require.Equal(t, tc.strict, found.outcome().status(true))
	}
	require.Equal(t, 3, outcome{worse: true, unclear: true}.status(true), "what is known to be slower comes first")
}
