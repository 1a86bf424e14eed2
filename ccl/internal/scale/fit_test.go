package scale

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// figures are what jobs on one machine took, smallest first, as TestFigures of test/scale has measured it: `make fit`.
var figures = flag.String("figures", "testdata/figures.json", "what jobs of one machine took: constants are fitted to the first, and predict the others")

// figure is one of them, in seconds.
type figure struct {
	Ranks, Hosts, Cores int
	Join, Heard, Shrink float64
}

// constants are what processes take that share the processors of a machine. They make no use of the links' latency and bandwidth.
type constants struct {
	begin  time.Duration // for a process to start and to join, on its processor
	look   time.Duration // to look around, or to take in a frame of the control plane and pass it on
	letter time.Duration // to take in a message of Shrink, or to send one
}

// shared is slingshot on a machine with so many processors, where a process takes so long for a frame.
func shared(cores int, frame time.Duration) network {
	n := slingshot
	n.cores, n.look, n.handle = cores, frame, frame
	return n
}

// predict is what a job on so many hosts of one machine takes, in simulation.
func (c constants) predict(t *testing.T, like figure) figure {
	perHost := like.Ranks / like.Hosts
	heard := newFloodOf(like.Hosts, perHost, shared(like.Cores, c.look)).lose(1).all
	shrink := newAgreementOf(like.Hosts, perHost, 1, like.Ranks > 64, shared(like.Cores, c.letter))
	return figure{like.Ranks, like.Hosts, like.Cores, c.begin.Seconds() * float64(like.Ranks) / float64(like.Cores), heard.Seconds(), shrink.run(t).done.Seconds()}
}

// fitted is what has of take the time that it took, by steps that become smaller. of grows with what it is given.
func fitted(took float64, of func(time.Duration) float64) time.Duration {
	low, high := time.Nanosecond, time.Second
	for high-low > low/100 {
		if mid := (low + high) / 2; of(mid) < took {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// fit has the constants with which a job takes what it took.
func fit(t *testing.T, f figure) (c constants) {
	c.begin = time.Duration(f.Join * float64(f.Cores) / float64(f.Ranks) * 1e9)
	c.look = fitted(f.Heard, func(d time.Duration) float64 {
		return constants{look: d}.predict(t, f).Heard
	})
	c.letter = fitted(f.Shrink, func(d time.Duration) float64 {
		return constants{letter: d}.predict(t, f).Shrink
	})
	return c
}

// TestFit prints what the simulator predicts of larger jobs of a machine, with constants that are fitted to a small one, beside what they
// took there.
func TestFit(t *testing.T) {
	text, err := os.ReadFile(*figures)
	require.NoError(t, err)
	var all []figure
	require.NoError(t, json.Unmarshal(text, &all))
	require.GreaterOrEqual(t, len(all), 2)
	c := fit(t, all[0])
	t.Logf("of %d ranks on %d processors: a process takes %v to join, %v to look around and for a frame, %v for a message of Shrink",
		all[0].Ranks, all[0].Cores, c.begin.Round(10*time.Microsecond), c.look.Round(time.Microsecond), c.letter.Round(time.Microsecond))
	t.Log("| ranks | hosts | step | measured s | predicted s | predicted/measured |")
	for _, f := range all {
		p := c.predict(t, f)
		for _, step := range []struct {
			name      string
			took, say float64
		}{{"join", f.Join, p.Join}, {"a loss is heard", f.Heard, p.Heard}, {"Shrink", f.Shrink, p.Shrink}} {
			t.Logf("| %d | %d | %s | %.3f | %.3f | %.2f |", f.Ranks, f.Hosts, step.name, step.took, step.say, step.say/step.took)
			require.InDelta(t, 1, step.say/step.took, 9, "%s of %d ranks", step.name, f.Ranks)
			require.Greater(t, step.say/step.took, 0.1, "%s of %d ranks", step.name, f.Ranks)
		}
	}
}
