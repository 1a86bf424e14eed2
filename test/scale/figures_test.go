package scale

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

var (
	sizes   = flag.String("sizes", "16", "ranks of the jobs, 8 on a host, whose figures are measured")
	figures = flag.String("figures", "", "file to which these figures are written, for the simulator: see ccl/internal/scale")
	turns   = flag.Int("turns", 1, "jobs of each size, whose figures in the middle count")
)

// together is how many ranks of these jobs are on a host.
const together = 8

// figure is what a job of so many ranks on this machine takes, in seconds.
type figure struct {
	Ranks, Hosts, Cores int
	Join                float64 // from the first process to the last that has joined
	Heard               float64 // from the end of a rank until all others have heard of it
	Shrink              float64 // from then on until all have the Comm of those that are left
}

func init() { roles["shrunk"] = shrunk }

// lose makes barriers and then calls until one fails, since the process of the rank in the middle ends in the midst of them.
func lose(ctx context.Context, c *ccl.Comm, barriers int) error {
	victim := c.Size() / 2
	var err error
	for i := 0; i < barriers && err == nil; i++ {
		err = ccl.Barrier(ctx, c)
	}
	if err == nil && c.Rank() == victim {
		fmt.Println("ended", time.Now().UnixMicro())
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return p.Kill()
	}
	for err == nil { // some may still be in the last barrier when that one ends
		v := []int64{1}
		err = ccl.AllReduce(ctx, c, v, v, ccl.Sum)
	}
	var e *ccl.Error
	if !errors.As(err, &e) || e.Code != ccl.ErrRankLost || e.Peer != victim {
		return fmt.Errorf("rank %d: %w, but rank %d is lost", c.Rank(), err, victim)
	}
	fmt.Println("heard", time.Now().UnixMicro())
	return nil
}

// shrunk loses a rank, and goes on with those that are left.
func shrunk(ctx context.Context, c *ccl.Comm) error {
	if err := lose(ctx, c, callsEach); err != nil {
		return err
	}
	s, err := c.Shrink(ctx)
	if err != nil {
		return err
	}
	fmt.Println("shrunk", time.Now().UnixMicro())
	v := []int64{1}
	if err := ccl.AllReduce(ctx, s, v, v, ccl.Sum); err != nil {
		return err
	}
	if v[0] != int64(c.Size()-1) {
		return fmt.Errorf("rank %d: %d ranks are left", c.Rank(), v[0])
	}
	return s.Close()
}

// measured is what a job of n ranks takes.
func measured(t *testing.T, n int) figure {
	f, err := job(t, n, n/together, "shrunk")
	var x *boot.ExitError
	require.ErrorAs(t, err, &x)
	require.Equal(t, n/2, x.Rank)
	require.Equal(t, n-1, x.Well, "the others end well")
	require.Len(t, f["heard"], n-1)
	require.Len(t, f["shrunk"], n-1)
	return figure{Ranks: n, Hosts: n / together, Cores: runtime.NumCPU(), Join: seconds(f["began"], f["joined"]), Heard: seconds(f["ended"], f["heard"]),
		Shrink: float64(slices.Max(f["shrunk"])-slices.Max(f["heard"])) / 1e6}
}

// TestFigures measures what jobs take to join, to hear of a loss and to shrink, for the simulator to be fitted to: `make fit`.
func TestFigures(t *testing.T) {
	t.Log("| ranks | hosts | joined after s | a kill heard after s | shrunk after s |")
	var all []figure
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		require.NoError(t, err)
		var of [3][]float64
		f := figure{}
		for range *turns {
			f = measured(t, n)
			t.Logf("| %d | %d | %.2f | %.3f | %.3f |", n, f.Hosts, f.Join, f.Heard, f.Shrink)
			of[0], of[1], of[2] = append(of[0], f.Join), append(of[1], f.Heard), append(of[2], f.Shrink)
		}
		for i, to := range []*float64{&f.Join, &f.Heard, &f.Shrink} {
			slices.Sort(of[i])
			*to = of[i][len(of[i])/2]
			require.Positive(t, *to)
		}
		all = append(all, f)
	}
	if *figures != "" {
		text, err := json.MarshalIndent(all, "", "\t")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*figures, append(text, '\n'), 0o666))
	}
}
