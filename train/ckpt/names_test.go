package ckpt

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

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

// look looks each few times, and now at once.
func (l *live) look() {
	if l.asked++; l.asked%16 == 1 {
		l.now()
	}
}

func (l *live) now() { l.most = max(l.most, inUse()) }

// of is how much f has in use at most.
func (l *live) of(f func()) int {
	l.asked, l.most, l.before = 0, 0, inUse()
	f()
	return int(max(l.most, l.before) - l.before)
}

// watched are ranks, each a process with a heap of its own, whose calls of more than a few bytes are moments to look.
type watched struct {
	live
	c      *ccl.Comm
	dir    string // of all ranks
	limit  int    // of what is in memory at once
	seldom bool   // looks at the calls by which ranks agree, at which all that was read or planned is there, and at no others
}

func watch(t testing.TB, world *ccl.Comm, limit int) *watched {
	w := &watched{limit: limit}
	var err error
	w.c, err = world.SplitWith(t.Context(), 0, world.Rank(), func(o *ccl.Options) {
		o.OnCall = func(k ccl.Observation) {
			switch {
			case w.seldom && k.Call.Kind == ccl.KindAllReduce:
				w.now()
			case !w.seldom && k.Bytes > limit/8:
				w.look()
			}
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { w.c.Close() })
	root := make([]byte, 200)
	if world.Rank() == 0 {
		dir, err := os.MkdirTemp("", "names")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		copy(root, dir)
	}
	require.NoError(t, ccl.Broadcast(t.Context(), world, root, 0))
	w.dir = strings.TrimRight(string(root), "\x00")
	return w
}

// saving is how much Save has in use beside the tensors, and loading how much Load has.
func (w *watched) saving(t testing.TB, name string, ts []Tensor) int {
	return w.of(func() {
		d := &disk{atOnce: w.limit}
		if !w.seldom {
			d.fault = func(string, string) error { w.look(); return nil }
		}
		require.NoError(t, save(t.Context(), w.c, d, w.dir+"/"+name, nil, ts))
	})
}

func (w *watched) loading(t testing.TB, name string, ts []Tensor) int {
	return w.of(func() {
		_, err := LoadWith(t.Context(), w.c, w.dir+"/"+name, nil, ts, LoadOptions{atOnce: w.limit})
		require.NoError(t, err)
	})
}

// The names of tensors are in memory once, beside those that the program has: with long names Save and Load hold no more bytes
// than with short ones, but for the names of other ranks alone, once, on rank 0, and those of the index, once, in Load. Each
// rank is a process, so that each has a heap of its own.
func TestNamesOnce(t *testing.T) {
	// With numbers before them names fit into 4 KiB, which is what the allocator gives them.
	const n, size, ranks = 500, 4<<10 - 8, 2
	const names = n * size
	ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
		w := watch(t, world, 64<<10)
		var held [2][3]int
		for k, length := range []int{0, size} {
			tensors := func(own bool) (ts []Tensor) {
				for i := range n {
					name := fmt.Sprint(i, strings.Repeat("x", length))
					at := 2 * world.Rank()
					shape := []int{2 * ranks}
					if own {
						name, at, shape = fmt.Sprint(world.Rank(), name), 0, []int{2}
					}
					ts = append(ts, Tensor{Name: name, Shape: shape, Lo: at, Hi: at + 2, Data: []int8{int8(i), int8(at)}})
				}
				return ts
			}
			alike, own := tensors(false), tensors(true)
			name := fmt.Sprint(length)
			held[k][0] = w.saving(t, name, alike)
			held[k][1] = w.saving(t, "own"+name, own)
			alike[5].Data.([]int8)[0] = 0
			held[k][2] = w.loading(t, name, alike)
			require.Equal(t, []int8{5, int8(2 * world.Rank())}, alike[5].Data)
			runtime.KeepAlive(own)
		}
		for i, what := range []string{"Save of names that all have", "Save of names of each rank's own", "Load"} {
			want := 0
			if i == 2 || i == 1 && world.Rank() == 0 {
				want = names
			}
			requireHeld(t, what, names, want, held[1][i]-held[0][i])
		}
		ccltest.Barrier(t, world)
	}, ccltest.Processes(ranks))
}

// requireHeld compares how much more is held with long names than with short ones, which are names bytes more, with what it should be.
func requireHeld(t testing.TB, what string, names, want, more int) {
	t.Logf("%s: %d bytes of names, of which %d more are held", what, names, more)
	require.Less(t, more, want+names/2, what)
	if want > 0 {
		require.Greater(t, more, want/2, "%s: what is measured is there", what)
	}
}

// A million tensors, half of them each rank's own, have their names in memory as often as a few have.
func TestAMillionNames(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a million tensors, saved and loaded twice")
	}
	const n, ranks, short, long = 500_000, 2, 8, 48 // bytes of a name, of which the allocator takes no more
	ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
		w := watch(t, world, atOnce)
		w.seldom = true // each look is at a heap of a million tensors
		var held [2][2]int
		for k, length := range []int{short, long} {
			ts := make([]Tensor, n)
			for i := range ts {
				at := world.Rank()*n + i
				name := fmt.Sprintf("%0*d", length, at)
				if length == long {
					name = fmt.Sprintf("layers.%03d.mlp.experts.%05d.down_proj.weight.sq", at/8192, at%8192)
				}
				require.Len(t, name, length)
				ts[i] = Tensor{Name: name, Shape: []int{1}, Data: []int32{int32(at)}}
			}
			name := fmt.Sprint(length)
			held[k][0] = w.saving(t, name, ts)
			for i := range ts {
				ts[i].Data.([]int32)[0] = -1
			}
			held[k][1] = w.loading(t, name, ts)
			for i := range ts {
				if got := ts[i].Data.([]int32)[0]; got != int32(world.Rank()*n+i) {
					t.Fatalf("%s is %d", ts[i].Name, got)
				}
			}
		}
		const names = n * (long - short)
		others := 0
		if world.Rank() == 0 {
			others = names
		}
		requireHeld(t, "Save", names, others, held[1][0]-held[0][0])
		requireHeld(t, "Load", names, ranks*names, held[1][1]-held[0][1])
		ccltest.Barrier(t, world)
	}, ccltest.Processes(ranks), ccltest.Deadline(9*time.Minute))
}
