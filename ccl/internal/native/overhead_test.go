//go:build (nccl || rccl) && cgo && linux

package native

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/race"
)

// promised is what an Issue of one call may cost more than the call in C; the test asserts ten times that, since
// machines are shared.
const promised = 60 * time.Nanosecond

// TestOverhead issues calls that the fake library does not run, in turns with the loop in C.
func TestOverhead(t *testing.T) {
	rounds, calls := 15, 1_000_000/15
	if testing.Short() {
		calls /= 20
	}
	t.Setenv("FAKE_NCCL_IDLE", "1")
	vendors(t, func(t *testing.T, v *vendor) {
		runtime.LockOSThread() // which issueMany sets to the rank's device, and the loop in C wants
		defer runtime.UnlockOSThread()
		r := world(t, v, 1)[0]
		c := v.fake(t)
		at := uintptr(4096)
		ours, theirs := time.Hour, time.Hour // the least of a call: other processes only ever add to it
		for range rounds {
			start := time.Now()
			require.NoError(t, r.issueMany(at, calls))
			ours = min(ours, time.Since(start)/time.Duration(calls))
			bare := c.Loop(cside.Asked[v.name], r.Native(), r.handle(), at, 1, calls)
			require.Positive(t, bare)
			theirs = min(theirs, bare/time.Duration(calls))
		}
		t.Logf("an all-reduce: at least %v in Go, %v in C", ours, theirs)
		if !race.Enabled {
			require.Less(t, ours-theirs, 10*promised)
		}
	})
}

func (r *rank) issueMany(at uintptr, n int) error {
	calls := []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Root: -1, Count: 1}, DstAt: at, SrcAt: at}}}
	h := r.handle()
	for range n {
		if err := r.Issue(h, calls); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkIssue is one call, and a group of 8.
func BenchmarkIssue(b *testing.B) {
	b.Setenv("FAKE_NCCL_IDLE", "1")
	for _, v := range compiledIn {
		r := world(b, v, 1)[0]
		calls := make([]*op.Call, 8)
		for i := range calls {
			calls[i] = &op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Root: -1, Count: 1}, DstAt: 4096, SrcAt: 4096}}
		}
		for name, n := range map[string]int{"1": 1, "8": 8} {
			b.Run(v.name+"/calls="+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := r.Issue(r.handle(), calls[:n]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
