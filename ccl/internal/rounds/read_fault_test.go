//go:build fault && linux

package rounds

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// read are the collectives in which ranks read each other's memory, in all ways: of how many ranks, and elements of a block.
var read = []struct {
	name  string
	kind  call.Kind
	root  int
	n     []int
	count []int
	src   func(r, n, count int) []int32
	want  func(r, n, count int) []int32
}{
	{"AllReduce", call.AllReduce, -1, []int{2}, []int{16 << 10, 100 << 10}, whole, total},
	{"AllReduce by parts", call.AllReduce, -1, []int{2, 3}, []int{300 << 10}, whole, total},
	{"Broadcast", call.Broadcast, 0, []int{2, 3}, []int{100_000}, nil, func(_, _, count int) []int32 { return vector(0, 0, count) }},
	{"ReduceScatter", call.ReduceScatter, -1, []int{2, 3}, []int{50_000},
		func(r, n, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(r, q, count) }) },
		func(r, n, count int) []int32 { return sumOf(n, r, count) }},
	{"AllGather", call.AllGather, -1, []int{2, 3}, []int{50_000}, whole,
		func(_, n, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, 0, count) }) }},
	{"Gather", call.Gather, 0, []int{2, 3}, []int{50_000}, whole, func(r, n, count int) []int32 { return moved[1].want(r, n, 0, count) }},
	{"Scatter", call.Scatter, 0, []int{2, 3}, []int{50_000},
		func(r, n, count int) []int32 { return moved[2].src(r, n, 0, count) },
		func(r, n, count int) []int32 { return moved[2].want(r, n, 0, count) }},
	{"AllToAll", call.AllToAll, -1, []int{2, 3}, []int{50_000},
		func(r, n, count int) []int32 { return moved[3].src(r, n, 0, count) },
		func(r, n, count int) []int32 { return moved[3].want(r, n, 0, count) }},
	{"AllToAllV", call.AllToAllV, -1, []int{2, 3}, []int{50_000},
		func(r, n, count int) []int32 { return moved[3].src(r, n, 0, count) },
		func(r, n, count int) []int32 { return moved[3].want(r, n, 0, count) }},
}

func whole(r, _, count int) []int32 { return vector(r, 0, count) }
func total(_, n, count int) []int32 { return sumOf(n, 0, count) }

// everyRead calls f for each of them. callOf makes the call of a rank, and says what it is to give.
func everyRead(t *testing.T, f func(t *testing.T, all []*Team, callOf func(c *Team) (k *call.Call, want []int32))) {
	for _, tc := range read {
		for _, n := range tc.n {
			for _, count := range tc.count {
				t.Run(fmt.Sprintf("%s of %d ranks, %d elements", tc.name, n, count), func(t *testing.T) {
					host, err := shm.NewShared()
					require.NoError(t, err)
					defer host.Close()
					f(t, ranksOn(t, host, n, byRead), func(c *Team) (*call.Call, []int32) {
						want := tc.want(c.me, n, count)
						k := callOf(tc.kind, tc.root, count, make([]int32, len(want)), nil)
						if tc.src != nil {
							k.Src = bytesOf(tc.src(c.me, n, count))
						} else if c.me == tc.root { // Broadcast
							k.Dst = bytesOf(slices.Clone(want))
						}
						if tc.kind == call.AllToAllV {
							k.DC = slices.Repeat([]int{count}, n)
							k.SC = k.DC
						}
						return k, want
					})
				})
			}
		}
	}
}

// A rank is held before it reads. The others give up, own their memory again and write there. What the rank then reads it must
// not take for the operands.
func TestReadOfWhatWasGivenUp(t *testing.T) {
	defer func() { require.NoError(t, inject.Plan("")) }()
	everyRead(t, func(t *testing.T, all []*Team, callOf func(c *Team) (*call.Call, []int32)) {
		held, release := make(chan struct{}), make(chan struct{})
		inject.Set("hold", func() { close(held); <-release })
		require.NoError(t, inject.Plan("cpu.read:1:hold"))
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		var returned atomic.Int32
		var ranks sync.WaitGroup
		for _, c := range all {
			ranks.Go(func() {
				k, want := callOf(c)
				f := runIn(ctx, c, k)
				got := slices.Clone(k.Dst)
				for _, b := range [][]byte{k.Src, k.Dst} { // they are this rank's own again
					for i := range b {
						b[i] = 0x5a
					}
				}
				returned.Add(1)
				if f == nil {
					assert.True(t, slices.Equal(bytesOf(want), got), "rank %d: no error, and wrong data", c.me)
				} else {
					assert.Equal(t, call.Canceled, f.Code, "rank %d: %v", c.me, f)
				}
			})
		}
		<-held
		for idle := 0; idle+int(returned.Load()) < len(all)-1; time.Sleep(time.Millisecond) {
			idle = 0
			for _, c := range all {
				if c.local.Waits(c.me).Load() != 0 {
					idle++
				}
			}
		}
		giveUp()
		for int(returned.Load()) < len(all)-1 {
			time.Sleep(time.Millisecond)
		}
		close(release)
		ranks.Wait()
	})
}

// Each way gives what it gives elsewhere on memory that the kernel lets no other process read.
func TestReadOfWhatTheKernelRefuses(t *testing.T) {
	require.NoError(t, inject.Plan("cpu.refuse:1:from:1"))
	defer func() { require.NoError(t, inject.Plan("")) }()
	everyRead(t, func(t *testing.T, all []*Team, callOf func(c *Team) (*call.Call, []int32)) {
		for range 3 {
			atOnce(t, all, func(c *Team) *call.Fault {
				k, want := callOf(c)
				f := run(t, c, k)
				same(t, want, unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(k.Dst))), len(want)), "rank %d", c.me)
				return f
			})
		}
		require.NotZero(t, all[0].local.Wanted(0).Load()+all[0].local.Wanted(1).Load(), "nothing was asked for")
	})
}
