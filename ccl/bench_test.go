package ccl_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// BenchmarkAllReduce is an all-reduce of float32 between goroutine ranks: with one
// rank, what a call costs before anything is sent.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		for _, bytes := range []int{8, 2 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, bytes), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				boots := boot.Local(n)
				var wg sync.WaitGroup
				for r := range n {
					wg.Go(func() {
						c, err := ccl.NewComm(b.Context(), boots[r], nil)
						if err != nil {
							b.Error(err)
							return
						}
						defer c.Close()
						dst, src := make([]float32, bytes/4), make([]float32, bytes/4)
						for i := range src {
							src[i] = float32(i%97 + r)
						}
						for range b.N {
							if err := ccl.AllReduce(b.Context(), c, dst, src, ccl.Sum); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
