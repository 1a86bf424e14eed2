package ccl_test

import (
	"fmt"
	"sync"
	"testing"

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
