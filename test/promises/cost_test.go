// Not under the race detector: that would be the cost.
//go:build linux && !race

package promises

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/test/internal/measure"
)

func init() {
	// The lower quartile of the time of an all-reduce of 8 bytes, over many short stretches: what the machine does
	// meanwhile falls into some of them.
	parts["latency"] = func(ctx context.Context, c *ccl.Comm) {
		x := make([]float64, 1)
		const stretches, calls = 200, 500
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

// The build without checks is the same but for the build tag nocheck: no arguments are checked, no records kept for
// others, nothing compared. The two are measured in turns, and the interval is that of the median of the differences.
func TestR16ChecksCostNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds all once more, and measures")
	}
	pairs := times(15, 60)
	without := filepath.Join(t.TempDir(), "nocheck.test")
	cache.Whole()
	out, err := exec.Command("go", "test", "-c", "-tags", "nocheck", "-o", without, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	latency := func(program string) float64 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		err := boot.Spawn(ctx, boot.Command{N: 2, Path: program, Args: []string{"-test.run=^TestRankProcess$"},
			Env: append(os.Environ(), partVar+"=latency"), Stdout: &out, Stderr: &out})
		require.NoError(t, err, out.String())
		m := latencyLine.FindStringSubmatch(out.String())
		require.NotNil(t, m, out.String())
		ns, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return ns
	}
	var base, more []float64 // by pair: without checks, and what checks cost
	for i := range pairs {
		var with, wo float64
		if i%2 == 0 {
			with, wo = latency(os.Args[0]), latency(without)
		} else {
			wo, with = latency(without), latency(os.Args[0])
		}
		base, more = append(base, wo), append(more, with-wo)
	}
	ns, _, _ := measure.Median(base)
	cost, low, high := measure.Median(more)
	record(t, 16, "R16", "8-byte AllReduce, 2 processes: with checks, against the same build without", "≤ 1 % or 10 ns",
		"%.0f ns %+.1f ns (95 %% from %+.1f to %+.1f, %d pairs)", ns, cost, low, high, pairs)
	if promise := max(ns/100, 10); low > 10*promise {
		t.Errorf("checks cost %.1f ns at least, more than ten times the %.1f promised: %.1f", low, promise, more)
	}
}
