package compare

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/stat"
)

// launch is one simulated run, whose calls take factor times as long: its launch has a level of its own, its
// lines scatter, and now and then it is much slower as a whole.
type launch struct{ level, lines, slow float64 }

func (l launch) run(r *rand.Rand, factor float64) run {
	level := math.Log(factor) + l.level*r.NormFloat64()
	if l.slow > 0 && r.IntN(15) == 0 {
		level += l.slow * r.ExpFloat64()
	}
	x := run{}
	for _, size := range []int{8, 64, 512, 4096, 1 << 15, 1 << 18, 1 << 20, 1 << 23} {
		for _, inPlace := range []bool{false, true} {
			x[key{op: "allreduce", size: size, inPlace: inPlace}] = math.Log(2+float64(size)/1e3) + level + l.lines*r.NormFloat64()
		}
	}
	return x
}

func (l launch) side(r *rand.Rand, n int, factor float64) (s side) {
	for range n {
		s.runs = append(s.runs, l.run(r, factor))
	}
	return s
}

// verdicts are those of the groups.
func verdicts(t *testing.T, old, new side) (list []string, any bool) {
	cs, err := changes(old, new, math.Inf(1)) // what is not told is no change
	require.NoError(t, err)
	for _, c := range cs {
		list, any = append(list, c.verdict()), any || c.verdict() != noChange
	}
	return list, any
}

// Runs of one program are told apart in at most 5 of 100 comparisons, whichever numbers of runs the sides have, on
// machines of several kinds; swapped sides swap the verdicts.
func TestTwins(t *testing.T) {
	trials := 300
	if testing.Short() {
		trials = 100
	}
	for _, l := range []launch{{0.02, 0.05, 0}, {0.1, 0.05, 0}, {0.08, 0.1, 1}, {0.02, 0.02, 5}} {
		alarms, of := 0, 0
		for _, n := range []int{2, 3, 5, 10} {
			for _, m := range []int{2, 3, 5, 10} {
				r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
				here := 0
				for range trials {
					old, new := l.side(r, n, 1), l.side(r, m, 1)
					one, any := verdicts(t, old, new)
					other, _ := verdicts(t, new, old)
					for i := range one {
						mirrored := map[string]string{noChange: noChange, slower: faster, faster: slower}
						require.Equal(t, mirrored[one[i]], other[i])
					}
					if any {
						here++
					}
				}
				alarms, of = alarms+here, of+trials
				// Four standard deviations of a count above what is promised.
				require.LessOrEqual(t, float64(here), 0.05*float64(trials)+4*math.Sqrt(0.05*0.95*float64(trials)), "%+v, %d against %d", l, n, m)
			}
		}
		t.Logf("%+v: %.2f %% of %d", l, 100*float64(alarms)/float64(of), of)
		require.LessOrEqual(t, float64(alarms), 0.05*float64(of)+2*math.Sqrt(0.05*0.95*float64(of)), "%+v", l)
	}
}

// A slowdown of 5 or 10 % is found as often as Welch's test of each group finds it (what compare did before), where that
// alarms as seldom as promised; on the whole more often.
func TestPlanted(t *testing.T) {
	trials := 300
	if testing.Short() {
		trials = 40
	}
	l := launch{0.02, 0.05, 0}
	for _, factor := range []float64{1.05, 1.1} {
		found, before := 0, 0
		for _, n := range []int{2, 3, 5, 10} {
			for _, m := range []int{2, 3, 5, 10} {
				r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
				here, then := 0, 0
				for range trials {
					old, new := l.side(r, n, 1), l.side(r, m, factor)
					if _, any := verdicts(t, old, new); any {
						here++
					}
					if welch(old, new) {
						then++
					}
				}
				found, before = found+here, before+then
				if n == m || min(n, m) > 2 {
					require.GreaterOrEqual(t, float64(here), float64(then)-2*math.Sqrt(float64(trials)*0.25), "%v, %d against %d", factor, n, m)
				}
			}
		}
		t.Logf("%v: %d, Welch %d", factor, found, before)
		require.GreaterOrEqual(t, found, before)
	}
}

// welch reports whether Welch's test (1947) tells any group apart.
func welch(old, new side) bool {
	keys := common(slices.Concat(old.runs, new.runs)...)
	gs := groups(keys)
	for _, g := range gs {
		level := func(s side) (n, mean, variance float64) {
			var logs []float64
			for _, r := range s.runs {
				logs = append(logs, ratio(old.runs[0], r, g.keys))
			}
			spread := stat.Of(logs)
			return float64(len(logs)), spread.Avg, spread.Stdev * spread.Stdev
		}
		na, a, va := level(old)
		nb, b, vb := level(new)
		va, vb = va/na, vb/nb
		freedom := (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
		if math.Abs(b-a) > stat.T(freedom, together(len(gs)))*math.Sqrt(va+vb) {
			return true
		}
	}
	return false
}

// The interval that is printed as one of 95 % holds the truth in 95 of 100 comparisons, of each group.
func TestCoverage(t *testing.T) {
	trials := 1000
	if testing.Short() {
		trials = 200
	}
	l, truth := launch{0.03, 0.03, 0}, math.Log(1.2)
	for _, sides := range [][2]int{{2, 2}, {2, 10}, {10, 2}, {5, 7}} {
		r := rand.New(rand.NewPCG(7, uint64(sides[0]*16+sides[1])))
		held, of := 0, 0
		for range trials {
			cs, err := changes(l.side(r, sides[0], 1), l.side(r, sides[1], 1.2), 0)
			require.NoError(t, err)
			require.Len(t, cs, 3)
			if of++; !cs[0].shown.Excludes(truth) {
				held++
			}
		}
		require.InDelta(t, 0.95, float64(held)/float64(of), 4*math.Sqrt(0.05*0.95/float64(of)), sides)
	}
}

// What decides is wider, and is named.
func TestBonferroniIsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	l := launch{0.01, 0.01, 0}
	var b bytes.Buffer
	_, err := write(&b, l.side(r, 5, 1), l.side(r, 5, 1.3), 0.05, nil)
	require.NoError(t, err)
	require.Contains(t, b.String(), "95 % interval")
	require.Contains(t, b.String(), "a group counts as changed by its 98.33 % interval, which gives 95 % for all 3 groups together (Bonferroni)\n")
	cs, err := changes(l.side(r, 5, 1), l.side(r, 5, 1.3), 0)
	require.NoError(t, err)
	for _, c := range cs {
		require.Less(t, c.shown.High-c.shown.Low, c.decide.High-c.decide.Low)
	}
}

// A program against itself in turns, through ab: the same promise, and slowdowns are found.
func TestTwinsInTurns(t *testing.T) {
	trials := uint64(100)
	if testing.Short() {
		trials = 20
	}
	alarms := 0
	for seed := range trials {
		r, err := machine(1000+seed, 1).run(t.Context())
		require.NoError(t, err)
		if v := r.verdict(); v != noChange && v != cannotTell {
			alarms++
		} else {
			require.False(t, r.outcome().worse)
		}
	}
	t.Logf("%d of %d", alarms, trials)
	require.LessOrEqual(t, float64(alarms), 0.05*float64(trials))
}
