// Not under the race detector: that would be the cost.
//go:build linux && !race

package promises

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() {
	// How long a communicator takes to make, and what a process has more in memory when it has been used.
	parts["comms"] = func(ctx context.Context, c *ccl.Comm) {
		const count = 32
		x := make([]float32, 1<<18)
		var all []*ccl.Comm
		var took []time.Duration
		before := resident()
		for range count {
			if err := ccl.Barrier(ctx, c); err != nil {
				fmt.Println(err)
				return
			}
			began := time.Now()
			d, err := c.Split(ctx, 0, c.Rank())
			took = append(took, time.Since(began))
			if err == nil {
				err = ccl.AllReduce(ctx, d, x, x, ccl.Max)
			}
			if peer := 1 - c.Rank(); err == nil {
				err = ccl.SendRecv(ctx, d, x[:1], peer, x[1:2], peer)
			}
			if err != nil {
				fmt.Println(err)
				return
			}
			all = append(all, d)
		}
		bytes := (resident() - before) / count
		for _, d := range all {
			d.Close()
		}
		slices.Sort(took)
		fmt.Printf("comm %d ns %d bytes\n", took[count/2].Nanoseconds(), bytes)
	}
}

// resident is how much of this process is in memory, in bytes.
func resident() int {
	text, _ := os.ReadFile("/proc/self/statm")
	var size, pages int
	fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize()
}

var commLine = regexp.MustCompile(`comm (\d+) ns (-?\d+) bytes`)

// A communicator of two ranks of a host is cheap, so that a program can have one for each purpose.
func TestCommIsCheap(t *testing.T) {
	const promise, room = time.Millisecond, 8 << 20
	_, text := processes(t, 2, 0, "comms", "")
	found := commLine.FindAllStringSubmatch(text, -1)
	require.Len(t, found, 2, text)
	for _, m := range found {
		ns, _ := strconv.Atoi(m[1])
		bytes, _ := strconv.Atoi(m[2])
		t.Logf("a Comm takes %v to make, and %d KiB when it has been used", time.Duration(ns), bytes>>10)
		asserted(t, "Split between two ranks", time.Duration(ns), promise)
		require.Less(t, bytes, room)
	}
}
