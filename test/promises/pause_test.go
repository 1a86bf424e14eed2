// Not under the race detector: its kernels are slower than those that are promised.
//go:build linux && !race

package promises

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
)

func init() {
	// A few large calls while the world is stopped as often as it can be.
	parts["pauses"] = func(ctx context.Context, c *ccl.Comm) {
		n, _ := strconv.Atoi(argument())
		x := make([]float32, n/4)
		for i := range x {
			x[i] = 1
		}
		var all []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
				all = append(all, stop())
			}
		}()
		for end, over := []float64{0}, false; !over; {
			if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
				fmt.Println(err)
				return
			}
			select {
			case <-done:
				end[0] = 1
			default:
			}
			if err := ccl.AllReduce(ctx, c, end, end, ccl.Min); err != nil {
				fmt.Println(err)
				return
			}
			over = end[0] == 1
		}
		fmt.Printf("stops %d most %d\n", len(all), most(all).Nanoseconds())
	}
}

// stop stops the world as the collector does, and returns the time that this process has computed until all of its
// goroutines stood still: its own clock, which stands still too while other programs have the processors. Where these
// take the processor just after the stop, it is more.
func stop() time.Duration {
	before := computed()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return computed() - before
}

// computed is the time that all threads of this process have had a processor.
func computed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// most is what three of four do not exceed.
func most(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*3/4]
}

var stopsLine = regexp.MustCompile(`stops (\d+) most (\d+)`)

// No kernel and no wait keeps the collector waiting, however large the call: three times of four all goroutines stop
// before they have computed for another millisecond.
func TestCollectorStops(t *testing.T) {
	const size = 256 << 20
	ranks := max(2, min(runtime.NumCPU()-1, 4))
	for _, way := range []struct {
		name  string
		hosts int
	}{{"on one host", 0}, {"on a host each", ranks}} {
		t.Run(way.name, func(t *testing.T) {
			_, text := processes(t, ranks, way.hosts, "pauses", strconv.Itoa(size))
			found := stopsLine.FindAllStringSubmatch(text, -1)
			require.Len(t, found, ranks, text)
			for _, m := range found {
				ns, err := strconv.Atoi(m[2])
				require.NoError(t, err)
				t.Logf("AllReduce of %d MiB, %d ranks %s, %d processors: in three of four of %s stops they computed for up to %v",
					size>>20, ranks, way.name, runtime.NumCPU(), m[1], round(time.Duration(ns)))
				asserted(t, "computed until all goroutines had stopped", time.Duration(ns), time.Millisecond)
			}
		})
	}
}

// A loop in assembly that goes on for long is seen.
func TestStopIsSeen(t *testing.T) {
	zeros := make([]byte, 256<<20)
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			default:
				require.Equal(t, -1, bytes.IndexByte(zeros, 1))
			}
		}
	}()
	var all []time.Duration
	for range 20 {
		time.Sleep(time.Millisecond)
		all = append(all, stop())
	}
	close(done)
	<-over
	require.Greater(t, most(all), time.Millisecond)
}
