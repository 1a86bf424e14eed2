package links

import (
	"context"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/ranktest"
	"github.com/goccl/goccl/ccl/internal/reach"
)

var (
	atOnce  = ranktest.AtOnce[*Links]
	vector  = ranktest.Vector
	sumOf   = ranktest.Sum
	callOf  = ranktest.Call
	same    = ranktest.Same
	bytesOf = ranktest.Bytes
)

// ranksOf are n ranks of this process, with pipes between them: what they run of schedules is the same over connections.
func ranksOf(t testing.TB, n int, opt plane.Options) []*Links {
	t.Helper()
	return ranktest.Of(t, n, plane.PrivateHost(), opt, func(m *plane.Member) *Links {
		c, mem := new(Links), new(reach.Reach)
		mem.Init(m)
		c.Init(m, mem, new(call.Workspace))
		return c
	})
}

// lives moves the clock of j on until the test ends, as the monitor does.
func lives(t testing.TB, j *plane.Job) {
	ctx, stop := context.WithCancel(context.Background())
	var one sync.WaitGroup
	one.Go(func() {
		for ctx.Err() == nil {
			j.Time.Lived.Lap(time.Now())
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); one.Wait() })
}

// made runs f as Comm.Run does.
func made(c *Links, k *call.Call, f func(ctx context.Context, k *call.Call) *call.Fault) *call.Fault {
	k.Seal()
	if k.DC != nil && k.Kind != call.AllToAllV {
		k.Offsets = call.OffsetsOf(nil, k.DC, k.Elem)
	}
	c.rank.Current.Begin(k, c.rank.Site.Job.Clock(), false)
	if !k.Kind.Pairwise() {
		c.rank.Order.Enter(k)
	}
	fault := f(context.Background(), k)
	c.rank.EndCall()
	return fault
}

// blocks are those of n ranks, one behind another.
func blocks(n int, of func(q int) []int32) (all []int32) {
	for q := range n {
		all = append(all, of(q)...)
	}
	return all
}

func int32sOf(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
