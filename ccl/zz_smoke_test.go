package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func TestSmoke(t *testing.T) {
	for _, hosts := range []int{1, 2, 3} {
		for _, n := range []int{1, 2, 3, 4, 5} {
			t.Run(fmt.Sprintf("h%dn%d", hosts, n), func(t *testing.T) {
				var names []string
				if hosts > 1 {
					for r := range n {
						names = append(names, fmt.Sprint("h", r%hosts))
					}
				}
				bs := boot.Local(n, names...)
				var wg sync.WaitGroup
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				for r := range n {
					wg.Add(1)
					go func() {
						defer wg.Done()
						c, err := ccl.NewComm(ctx, bs[r], nil)
						if err != nil {
							t.Error(err)
							return
						}
						defer c.Close()
						for _, l := range []int{0, 1, 7, 512, 5000, 100000, 300001} {
							src, dst := make([]float32, l), make([]float32, l)
							for i := range src {
								src[i] = float32((r + 1) * (i%11 + 1))
							}
							if err := ccl.AllReduce(ctx, c, dst, src, ccl.Sum); err != nil {
								t.Error(err)
								return
							}
							for i := range dst {
								if want := float32(n * (n + 1) / 2 * (i%11 + 1)); dst[i] != want {
									t.Errorf("len %d at %d: %v want %v", l, i, dst[i], want)
									return
								}
							}
							all := make([]float32, n*l)
							if err := ccl.AllGather(ctx, c, all, src); err != nil {
								t.Error(err)
								return
							}
							for q := range n {
								for i := range l {
									if all[q*l+i] != float32((q+1)*(i%11+1)) {
										t.Errorf("allgather len %d", l)
										return
									}
								}
							}
							if err := ccl.ReduceScatter(ctx, c, dst, all, ccl.Sum); err != nil {
								t.Error(err)
								return
							}
							for i := range dst {
								if dst[i] != float32(n*(r+1)*(i%11+1)) {
									t.Errorf("rs len %d at %d", l, i)
									return
								}
							}
							if err := ccl.AllToAll(ctx, c, all, all); err != nil {
								t.Error(err)
								return
							}
							for q := range n {
								for i := range l {
									if all[q*l+i] != float32((r+1)*(i%11+1)) {
										t.Errorf("a2a len %d", l)
										return
									}
								}
							}
							for root := range n {
								if err := ccl.Gather(ctx, c, all, src, root); err != nil {
									t.Error(err)
									return
								}
								if err := ccl.Scatter(ctx, c, dst, all, root); err != nil {
									t.Error(err)
									return
								}
								for i := range dst {
									if dst[i] != src[i] {
										t.Errorf("scatter len %d at %d", l, i)
										return
									}
								}
								if err := ccl.Reduce(ctx, c, dst, src, ccl.Max, root); err != nil {
									t.Error(err)
									return
								}
								if err := ccl.Broadcast(ctx, c, dst, root); err != nil {
									t.Error(err)
									return
								}
								for i := range dst {
									if dst[i] != float32(n*(i%11+1)) {
										t.Errorf("bcast len %d at %d", l, i)
										return
									}
								}
							}
							if err := ccl.SendRecv(ctx, c, dst, (r+n-1)%n, src, (r+1)%n); err != nil {
								t.Error(err)
								return
							}
							if err := ccl.Barrier(ctx, c); err != nil {
								t.Error(err)
								return
							}
						}
						sub, err := c.Split(ctx, r%2, -r)
						if err != nil {
							t.Error(err)
							return
						}
						x := []int{1}
						if err := ccl.AllReduce(ctx, sub, x, x, ccl.Sum); err != nil || x[0] != sub.Size() {
							t.Error(err, x)
						}
						sub.Close()
						ccl.Barrier(ctx, c)
					}()
				}
				wg.Wait()
			})
		}
	}
}
