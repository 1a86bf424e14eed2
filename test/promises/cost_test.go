// Not under the race detector: that would be the cost.
//go:build linux && !race

package promises

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func init() {
	// The median time of an all-reduce of 8 bytes, over many short stretches: what the machine
	// does meanwhile falls into few of them.
	parts["latency"] = func(ctx context.Context, c *ccl.Comm) {
		x := make([]float64, 1)
		const stretches, calls = 200, 2000
		var ns []float64
		for range stretches {
			began := time.Now()
			for range calls {
				if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
					fmt.Println(err)
					return
				}
			}
			ns = append(ns, float64(time.Since(began).Nanoseconds())/calls)
		}
		slices.Sort(ns)
		if c.Rank() == 0 {
			fmt.Printf("latency %.2f\n", ns[len(ns)/4])
		}
	}
}

var latencyLine = regexp.MustCompile(`latency ([0-9.]+)`)

// The build without checks is the same but for the build tag nocheck: no arguments are checked,
// no records kept for others, nothing compared.
func TestR16ChecksCostNothing(t *testing.T) {
	pairs := 3
	if *write {
		pairs = 30
	}
	without := filepath.Join(t.TempDir(), "nocheck.test")
	out, err := exec.Command("go", "test", "-c", "-tags", "nocheck", "-o", without, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	measure := func(program string) float64 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out lockedBuffer
		err := boot.Spawn(ctx, boot.Command{N: 2, Path: program, Args: []string{"-test.run=^TestRankProcess$"},
			Env: append(os.Environ(), partVar+"=latency"), Stdout: &out, Stderr: &out})
		require.NoError(t, err, out.String())
		m := latencyLine.FindStringSubmatch(out.String())
		require.NotNil(t, m, out.String())
		ns, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return ns
	}
	// Where other programs run, one of the two may have got the worse cores: a real cost shows every time.
	for attempt := 1; ; attempt++ {
		var base float64
		var more []float64 // by pair: what checks cost
		for i := range pairs {
			var with, wo float64
			if i%2 == 0 {
				with, wo = measure(os.Args[0]), measure(without)
			} else {
				wo, with = measure(without), measure(os.Args[0])
			}
			base += wo / float64(pairs)
			more = append(more, with-wo)
		}
		mean, half := interval(more)
		promise := max(base/100, 10)
		cost := mean - half
		if cost > 10*promise && attempt < 4 {
			t.Logf("attempt %d: %+.1f ns, 95 %% from %+.1f on", attempt, mean, cost)
			continue
		}
		record(t, 16, "R16", "8-byte AllReduce, 2 processes: with checks, against the same build without", "≤ 1 % or 10 ns",
			"%.0f ns %+.1f ns (95 %% from %+.1f to %+.1f, %d pairs)", base, mean, mean-half, mean+half, pairs)
		if cost > 10*promise {
			t.Errorf("checks cost %.1f ns at least, in each of %d attempts", cost, attempt)
		}
		return
	}
}

// interval is the mean and half the width of its 95 % interval.
func interval(x []float64) (mean, half float64) {
	var squares float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return mean, 2.05 * math.Sqrt(squares/(n-1)/n)
}
