package cpu

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// comms are the Comms of a job whose ranks are goroutines, on those hosts.
func comms(t *testing.T, hosts []string) []*Comm {
	t.Helper()
	return commsOf(t, hosts, testTerms(), plane.Options{})
}

// testTerms are those of a job without a secret.
func testTerms() join.Terms {
	none, err := auth.None(nil)
	if err != nil {
		panic(err)
	}
	return join.Terms{Settings: "test", Secret: none}
}

// commsOf are the same on those terms and with those options.
func commsOf(t *testing.T, hosts []string, terms join.Terms, opt plane.Options) []*Comm {
	t.Helper()
	type joined struct {
		*Comm
		*call.Fault
	}
	came := make(chan joined)
	bs := boot.Local(len(hosts), hosts...)
	for _, b := range bs {
		go func() {
			c, f := Join(t.Context(), b, terms, opt)
			came <- joined{c, f}
		}()
	}
	all := make([]*Comm, len(hosts))
	for range hosts {
		j := <-came
		require.Nil(t, j.Fault)
		all[j.Rank()] = j.Comm
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for i, c := range all {
			closing.Go(func() {
				c.Close()
				bs[i].Close()
			})
		}
		closing.Wait()
	})
	return all
}

// Whoever reports a mismatch, the rank whose call differs from that of the most is the one named, by those also who
// have not made theirs yet.
func TestOddRankIsNamed(t *testing.T) {
	most, odd, other := call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, Count: 5}}}, call.Call{Head: op.Head{Record: call.Record{Kind: call.Broadcast, Root: 1}}}, call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier}}}
	for _, tc := range []struct {
		name  string
		calls []*call.Call // by rank; nil: it has not come to its call yet
		by    int          // the rank that reports it
		of    int
		named []int // by those that are not odd: one of these
	}{
		{"by the odd one", []*call.Call{&odd, &most, &most, &most, nil}, 0, 1, []int{0}},
		{"by the odd one, before most have come", []*call.Call{&odd, &most, &most, nil, nil, nil}, 0, 1, []int{0}},
		{"by the odd one, when all have come", []*call.Call{&odd, &most, &most, &most}, 0, 3, []int{0}},
		{"by another", []*call.Call{&most, nil, &most, &odd, &most}, 2, 3, []int{3}},
		{"by one of two odd ones", []*call.Call{&most, &odd, &odd, &most, &most, nil}, 1, 3, []int{1, 2}},
		{"by one of two odd ones, of the other", []*call.Call{&most, &odd, nil, &other, &most}, 1, 3, []int{1, 3}},
	} {
		for _, where := range []string{"1 host", "2 hosts", "a host each"} {
			t.Run(tc.name+", "+where, func(t *testing.T) {
				var hosts []string
				for r := range tc.calls {
					hosts = append(hosts, map[string]string{"1 host": "a", "2 hosts": fmt.Sprint(r / 3), "a host each": fmt.Sprint(r)}[where])
				}
				all := comms(t, hosts)
				for r, c := range all {
					if tc.calls[r] != nil {
						k := *tc.calls[r]
						k.Seal()
						require.Nil(t, watched(c).Enter(&k, false))
					}
				}
				mine, theirs := all[tc.by].rank.Order.Entered(0), all[tc.of].rank.Order.Entered(0)
				all[tc.by].Fail(plane.Disagree(mine, theirs, tc.of))
				first := -1
				for r, c := range all {
					select {
					case <-c.rank.Fate.Context().Done():
					case <-time.After(time.Minute): // test/promises asserts how soon
						require.Fail(t, "it is not told", "rank %d", r)
					}
					f := c.Failure()
					assert.Equal(t, call.Mismatch, f.Code)
					require.NotNil(t, f.Theirs)
					if tc.calls[r] != nil && tc.calls[r] != &most {
						assert.Equal(t, &most, tc.calls[f.Peer], "rank %d names %d", r, f.Peer)
						assert.Equal(t, call.AllReduce, f.Theirs.Kind)
						continue
					}
					assert.Contains(t, tc.named, f.Peer, "by rank %d", r)
					assert.Equal(t, tc.calls[f.Peer].Kind, f.Theirs.Kind)
					if first < 0 {
						first = f.Peer
					}
					assert.Equal(t, first, f.Peer, "by rank %d", r)
				}
			})
		}
	}
}
