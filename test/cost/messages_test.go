package cost

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// trip sends one message of a Link, and receives one.
type trip func(ctx context.Context, l ccl.Link, dst, src ccl.Buf) error

var trips = map[string]trip{
	"wait": func(ctx context.Context, l ccl.Link, dst, src ccl.Buf) error {
		r, s := l.Recv(dst), l.Send(src)
		if err := r.Wait(ctx); err != nil {
			return err
		}
		return s.Wait(ctx)
	},
	"ondone": func(_ context.Context, l ccl.Link, dst, src ccl.Buf) error {
		ended := make(chan error, 2)
		l.Recv(dst).OnDone(func(err error) { ended <- err })
		l.Send(src).OnDone(func(err error) { ended <- err })
		if err := <-ended; err != nil {
			return err
		}
		return <-ended
	},
}

// messages exchanges messages, how is "way bytes n", with the other rank, or with itself where there is
// none. It prints the time of each and what it allocates.
func messages(ctx context.Context, c *ccl.Comm, how string) error {
	f := strings.Fields(how)
	size, err := strconv.Atoi(f[1])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(f[2])
	if err != nil {
		return err
	}
	src, dst, peer := make([]byte, size), make([]byte, size), c.Size()-1-c.Rank()
	for i := range src {
		src[i] = byte(i + c.Rank())
	}
	l, exchange := ccl.LinkTo(c, peer, 1), trips[f[0]]
	var before, after runtime.MemStats
	var began time.Time
	for i := -n / 10; i < n; i++ {
		if i == 0 {
			runtime.ReadMemStats(&before)
			began = time.Now()
		}
		if err := exchange(ctx, l, ccl.BufOf(dst), ccl.BufOf(src)); err != nil {
			return err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if dst[size-1] != byte(size-1+peer) {
		return fmt.Errorf("rank %d: wrong message", c.Rank())
	}
	bytes, allocs := int64(after.TotalAlloc-before.TotalAlloc), int64(after.Mallocs-before.Mallocs)
	fmt.Println("ns", took.Nanoseconds()/int64(n), "allocated", bytes/int64(n), "milliallocs", allocs*1000/int64(n))
	return ccl.Barrier(ctx, c)
}

// BenchmarkMessages is how long two messages of Links take that cross, what a rank allocates for the one
// that it sends and the one that it receives.
func BenchmarkMessages(b *testing.B) {
	for _, place := range []struct {
		name         string
		ranks, hosts int
	}{{"itself", 1, 1}, {"host", 2, 1}, {"hosts", 2, 2}} {
		for _, way := range []string{"wait", "ondone"} {
			for _, size := range []int{8, 16 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%d", place.name, way, size), func(b *testing.B) {
					var ns, bytes, allocs int64
					for range b.N {
						f := exchanged(b, place.ranks, place.hosts, fmt.Sprint(way, " ", size, " ", min(20000, 2000<<20/size)))
						ns += greatest(f["ns"])
						bytes += greatest(f["allocated"])
						allocs += greatest(f["milliallocs"])
					}
					b.ReportMetric(float64(ns)/float64(b.N), "ns/exchange")
					b.ReportMetric(float64(bytes)/float64(b.N), "B/exchange")
					b.ReportMetric(float64(allocs)/1000/float64(b.N), "allocs/exchange")
				})
			}
		}
	}
}

func exchanged(t testing.TB, ranks, hosts int, how string) map[string][]int64 {
	return run(t, launch{path: os.Args[0], n: ranks, hosts: hosts, role: "messages " + how}, true)
}

// TestMessages makes sure that the benchmark has something to measure.
func TestMessages(t *testing.T) {
	for way := range trips {
		f := exchanged(t, 2, 2, way+" 40000 10")
		require.Len(t, f["ns"], 2)
		require.Len(t, f["milliallocs"], 2)
	}
}
