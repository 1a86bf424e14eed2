package ccl_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// BenchmarkQueue compares a blocking all-reduce with the same call issued to a Queue and waited for at once, on a
// HostStream and on Now: what code pays that is written on Queues.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 2} {
		for _, bytes := range []int{8, 64 << 10} {
			for _, how := range []string{"blocking", "stream", "now"} {
				b.Run(fmt.Sprintf("ranks=%d/bytes=%d/%s", n, bytes, how), func(b *testing.B) {
					b.ReportAllocs()
					var wg sync.WaitGroup
					for _, boot := range boot.Local(n) {
						wg.Go(func() { benchQueue(b, boot, bytes, how) })
					}
					wg.Wait()
				})
			}
		}
	}
}

// BenchmarkOnDone reports what OnDone adds to a queued call: calls with it and without are made in turns, 32 at a time, and the
// figures are medians over the turns.
func BenchmarkOnDone(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var wg sync.WaitGroup
			for r, boot := range boot.Local(n) {
				wg.Go(func() { benchOnDone(b, boot, r == 0) })
			}
			wg.Wait()
		})
	}
}

func benchOnDone(b *testing.B, boot ccl.Bootstrap, reports bool) {
	const batch = 32
	ctx := b.Context()
	c, err := ccl.NewComm(ctx, boot, nil)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	x := make([]float32, 2)
	buf, q := ccl.BufOf(x), c.On(nil).From("")
	var without, adds []float64 // ns of a call
	done := make(chan error, batch)
	told := func(err error) { done <- err }
	for range b.N {
		var took [2]time.Duration
		for with := range took {
			began := time.Now()
			for range batch {
				if w := q.AllReduce(buf, buf, ccl.Sum); with == 1 {
					w.OnDone(told)
				}
			}
			if err := q.Barrier().Wait(ctx); err != nil {
				b.Error(err)
				return
			}
			took[with] = time.Since(began)
			for range batch * with {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
		}
		without = append(without, float64(took[0].Nanoseconds())/batch)
		adds = append(adds, float64((took[1]-took[0]).Nanoseconds())/batch)
	}
	if reports {
		slices.Sort(without)
		slices.Sort(adds)
		b.ReportMetric(without[len(without)/2], "ns/call-without")
		b.ReportMetric(adds[len(adds)/2], "ns/OnDone")
	}
}

func benchQueue(b *testing.B, boot ccl.Bootstrap, bytes int, how string) {
	ctx := b.Context()
	c, err := ccl.NewComm(ctx, boot, nil)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	x := make([]float32, bytes/4)
	buf, q := ccl.BufOf(x), c.On(nil)
	if how == "now" {
		q = c.On(ccl.Now)
	}
	for range b.N {
		if how == "blocking" {
			err = ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		} else {
			err = q.AllReduce(buf, buf, ccl.Sum).Wait(ctx)
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
}
