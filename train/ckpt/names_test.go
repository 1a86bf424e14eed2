package ckpt

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// live is the most memory that was in use at some of the times at which it was asked, in this process, beside what was in use
// before.
type live struct {
	asked        int
	most, before uint64
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// look looks each few times.
func (l *live) look() {
	if l.asked++; l.asked%16 == 1 {
		l.most = max(l.most, inUse())
	}
}

// of is how much f has in use at most.
func (l *live) of(f func()) int {
	l.asked, l.most, l.before = 0, 0, inUse()
	f()
	return int(max(l.most, l.before) - l.before)
}

// The names of tensors are in memory once, beside those that the program has: with long names Save and Load hold no more bytes
// than with short ones, but for the names of other ranks alone, once, on rank 0, and those of the index, once, in Load. Each
// rank is a process, so that each has a heap of its own.
func TestNamesOnce(t *testing.T) {
	// With numbers before them names fit into 4 KiB, which is what the allocator gives them.
	const n, size, ranks, limit = 500, 4<<10 - 8, 2, 64 << 10
	const names = n * size
	ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
		ctx, l := t.Context(), &live{}
		c, err := world.SplitWith(ctx, 0, world.Rank(), func(o *ccl.Options) {
			o.OnCall = func(k ccl.Observation) {
				if k.Bytes > limit/8 {
					l.look()
				}
			}
		})
		require.NoError(t, err)
		defer c.Close()
		root := make([]byte, 200)
		if c.Rank() == 0 {
			dir, err := os.MkdirTemp("", "names")
			require.NoError(t, err)
			defer os.RemoveAll(dir)
			copy(root, dir)
		}
		require.NoError(t, ccl.Broadcast(ctx, world, root, 0))
		dir := strings.TrimRight(string(root), "\x00")
		var held [2][3]int
		for k, length := range []int{0, size} {
			tensors := func(own bool) (ts []Tensor) {
				for i := range n {
					name := fmt.Sprint(i, strings.Repeat("x", length))
					at := 2 * c.Rank()
					shape := []int{2 * ranks}
					if own {
						name, at, shape = fmt.Sprint(c.Rank(), name), 0, []int{2}
					}
					ts = append(ts, Tensor{Name: name, Shape: shape, Lo: at, Hi: at + 2, Data: []int8{int8(i), int8(at)}})
				}
				return ts
			}
			alike, own := tensors(false), tensors(true)
			saving := func(name string, ts []Tensor) int {
				return l.of(func() {
					d := &disk{atOnce: limit, fault: func(string, string) error { l.look(); return nil }}
					require.NoError(t, save(ctx, c, d, dir+"/"+name, nil, ts))
				})
			}
			name := fmt.Sprint(length)
			held[k][0] = saving(name, alike)
			held[k][1] = saving("own"+name, own)
			held[k][2] = l.of(func() {
				alike[5].Data.([]int8)[0] = 0
				_, err := load(ctx, c, dir+"/"+name, nil, alike, LoadOptions{atOnce: limit})
				require.NoError(t, err)
				require.Equal(t, []int8{5, int8(2 * c.Rank())}, alike[5].Data)
			})
			runtime.KeepAlive(own)
		}
		for i, what := range []string{"Save of names that all have", "Save of names of each rank's own", "Load"} {
			more, want := held[1][i]-held[0][i], 0
			if i == 2 || i == 1 && c.Rank() == 0 {
				want = names
			}
			t.Logf("%s: %d bytes of names, of which %d more are held", what, names, more)
			require.Less(t, more, want+names/2, what)
			if want > 0 {
				require.Greater(t, more, want/2, "%s: what is measured is there", what)
			}
		}
		require.NoError(t, ccl.Barrier(ctx, world))
	}, ccltest.Processes(ranks))
}
