package cpu

import (
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// twoOfAHost are a Comm's two ranks in this process, on memory that other processes can share.
func twoOfAHost(t *testing.T) [2]*Comm {
	t.Helper()
	h, err := newSharedHost()
	require.NoError(t, err)
	j := enterJob(t.Name(), 0)
	s := j.site(0)
	s.topo, s.host = topology([]int{0, 0}, 1), h
	off, err := h.alloc(regionBytes(2))
	require.NoError(t, err)
	var c [2]*Comm
	for r := range c {
		c[r], err = newComm(s, worldID, membersOf([]int{0, 1}), s.topo, r, off, Options{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, c := range c {
			j.remove(c)
		}
		s.host = newPrivateHost()
		j.leave()
		h.close()
	})
	return c
}

// taken is how much memory the host has.
func taken(t *testing.T, h *host) int {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(h.fd, &st))
	return int(st.Blocks * 512)
}

// freeBytes is how much of a host's space can be handed out.
func freeBytes(h *host) int {
	n := uint64(0)
	for _, r := range h.head.space.ranges() {
		n += r.pages()
	}
	return int(n) * page
}

// A rank that was stopped while it wrote goes on when the call has failed: what it writes then is lost, and nothing else
// is, wherever in a slice the result lies.
func TestTakeBack(t *testing.T) {
	for _, tc := range []struct {
		name              string
		slice, from, n    int
		replaced, inPages int // from there on, so many pages
	}{
		{"all of a slice", 5*page + 100, 0, 5*page + 100, 0, 6},
		{"whole pages", 8 * page, 2 * page, 3 * page, 2, 3},
		{"both edges shared", 8 * page, page + 8, 4*page + 16, 2, 3},
		{"to the end of the slice", 3*page + 8, page + 8, 2 * page, 2, 2},
		{"from the beginning", 3 * page, 0, page + 64, 0, 1},
		{"in a page", 3 * page, page + 64, 128, 0, 0},
		{"across two pages", 3 * page, page - 64, 128, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := twoOfAHost(t)[0]
			h := c.site.host
			before, room := taken(t, h), freeBytes(h)
			mem, err := c.MakeMemory(tc.slice)
			require.NoError(t, err)
			for i := range mem {
				mem[i] = 1
			}
			place := c.placeOf(mem)
			theirs, err := h.view(place.base, int(place.size)) // as another process has it
			require.NoError(t, err)

			dst := mem[tc.from : tc.from+tc.n]
			own := c.placeOf(dst)
			lead, tail := own.edges(tc.n)
			require.True(t, takeBack(dst))
			for i := range dst {
				dst[i] = 2
			}
			for i := lead; i < tc.n-tail; i++ { // where others write
				theirs[tc.from+i] = 3
			}
			for i, v := range mem {
				want := byte(1)
				if i >= tc.from && i < tc.from+tc.n {
					want = 2
				}
				require.Equal(t, want, v, "byte %d", i)
			}
			// What was not replaced is still one memory, and what was can be mapped anew.
			for at := 0; at < tc.slice; at += page {
				p := at / page
				b := mem[at:min(at+page, tc.slice)]
				where := c.placeOf(b)
				require.NotZero(t, where.size, "page %d is not shared", p)
				if p < tc.replaced || p >= tc.replaced+tc.inPages {
					require.Equal(t, span{place.base, place.size, uint64(at)}, where, "page %d", p)
					theirs[at]++
					require.Equal(t, theirs[at], b[0])
					continue
				}
				again, err := h.view(where.base, int(where.size))
				require.NoError(t, err)
				again[where.at]++
				require.Equal(t, again[where.at], b[0])
				h.drop(placeAt(where.base, int(where.size)))
			}
			h.drop(placeAt(place.base, int(place.size)))
			FreeMemory(unsafe.Pointer(&mem[0]))
			require.Nil(t, memoryAt(mem))
			// A piece that the stopped rank writes late may be there again; its place is not used any more.
			require.LessOrEqual(t, taken(t, h), before+tc.inPages*page)
			require.Equal(t, room-tc.inPages*page, freeBytes(h))
		})
	}
}

// A call that fails waits for a rank that writes, but not for long, and only such a rank has memory taken from it.
func TestReclaim(t *testing.T) {
	c := twoOfAHost(t)
	mem, err := c[0].MakeMemory(10 * page)
	require.NoError(t, err)
	defer FreeMemory(unsafe.Pointer(&mem[0]))
	dst, f := mem[page:3*page], fault(Canceled, -1, "on purpose")
	place := c[0].placeOf(dst)

	require.Equal(t, f, c[0].reclaim(dst, f))
	require.Equal(t, place, c[0].placeOf(dst), "nobody writes: nothing is replaced")

	require.Nil(t, c[1].mayTouch())
	done := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { c[1].touched(); close(done) })
	require.Equal(t, f, c[0].reclaim(dst, f))
	<-done
	require.Zero(t, c[0].local.touches(1).Load(), "it is waited for")

	require.Nil(t, c[1].mayTouch())
	began := time.Now()
	require.Equal(t, f, c[0].reclaim(dst, f))
	require.Less(t, time.Since(began), time.Second)
	require.NotEqual(t, place, c[0].placeOf(dst))
	require.Equal(t, place.base, c[0].placeOf(mem[:page]).base)
	c[1].touched()
}

// While a part of a slice is taken back, a program works in the pages of that part's edges.
func TestTakeBackLosesNothingBeside(t *testing.T) {
	c := twoOfAHost(t)[0]
	for range 100 {
		mem, err := c.MakeMemory(6 * page)
		require.NoError(t, err)
		beside := []*uint64{(*uint64)(unsafe.Pointer(&mem[page])), (*uint64)(unsafe.Pointer(&mem[5*page-8]))}
		var stop atomic.Bool
		var steps atomic.Uint64
		done := make(chan bool)
		go func() {
			for !stop.Load() {
				for _, p := range beside {
					if was := steps.Load(); atomic.AddUint64(p, 1) != was+1 {
						t.Errorf("step %d is lost", was)
					}
				}
				steps.Add(1)
			}
			close(done)
		}()
		until := func(n uint64) {
			for end := time.Now().Add(10 * time.Second); steps.Load() < n; runtime.Gosched() {
				require.True(t, time.Now().Before(end))
			}
		}
		until(100)
		require.True(t, takeBack(mem[page+8:5*page-8]))
		until(steps.Load() + 100)
		stop.Store(true)
		<-done
		FreeMemory(unsafe.Pointer(&mem[0]))
	}
}

// All that was handed out comes back: however much in total, and what is refused.
func TestHostGivesBack(t *testing.T) {
	h, err := newSharedHost()
	require.NoError(t, err)
	defer h.close()
	h.head.space.next.Store(memfdBytes - 4<<20) // as after a terabyte
	left := freeBytes(h)
	for i := range 200 {
		off, err := h.alloc(1 << 20)
		require.NoError(t, err, "%d", i)
		mem, err := h.view(off, 1<<20)
		require.NoError(t, err)
		require.Zero(t, mem[i], "memory is zero")
		mem[i] = 1
		h.drop(placeAt(off, 1<<20))
		h.free(off, 1<<20)
	}
	_, err = h.alloc(2 << 40)
	require.ErrorContains(t, err, "shared memory: 2147483648 KiB are asked for, more than is left of the 1024 GiB that the ranks of a host can share")
	real := meminfo
	defer func() { meminfo = real }()
	meminfo = func() ([]byte, error) { return []byte("MemTotal: 9 kB\nMemAvailable:       2000 kB\n"), nil }
	_, err = h.alloc(1 << 20)
	require.EqualError(t, err, "shared memory: 1024 KiB are needed, and this host has 2000 KiB of memory left; free memory or use fewer ranks")
	require.Equal(t, left, freeBytes(h))
}

// A system without memory to spare does not refuse, but kills: so MakeSlice looks first.
func TestSliceBeyondTheMemoryOfTheHost(t *testing.T) {
	real := meminfo
	defer func() { meminfo = real }()
	for _, tc := range []struct {
		text string
		err  error
		want bool
	}{
		{"MemTotal:       24683932 kB\nMemFree:  400 kB\nMemAvailable:   20000 kB\n", nil, false},
		{"MemAvailable:   200000 kB\n", nil, true},
		{"MemAvailable:   100000 kB\n", nil, false}, // 64 MiB would leave less for all others
		{"MemFree:   100 kB\n", nil, true},          // an old kernel
		{"MemAvailable:   much\n", nil, true},
		{"", errors.New("no /proc"), true},
	} {
		meminfo = func() ([]byte, error) { return []byte(tc.text), tc.err }
		for name, host := range map[string]func() (*host, error){"shared": newSharedHost, "private": func() (*host, error) { return newPrivateHost(), nil }} {
			h, err := host()
			require.NoError(t, err)
			c := &Comm{site: &site{host: h}}
			mem, err := c.MakeMemory(64 << 20)
			if tc.want {
				require.NoError(t, err, "%s: %q", name, tc.text)
				FreeMemory(unsafe.Pointer(&mem[0]))
			} else {
				require.ErrorContains(t, err, "shared memory: 65536 KiB are needed, and this host has ", "%s: %q", name, tc.text)
			}
			h.close()
		}
	}
}

// Of memory that ranks take at the same moment, each step sees what the others have taken.
func TestReserveStepByStep(t *testing.T) {
	h, err := newSharedHost()
	require.NoError(t, err)
	defer h.close()
	before, left := taken(t, h), 200<<10 // KiB
	real := meminfo
	defer func() { meminfo = real }()
	meminfo = func() ([]byte, error) {
		left -= 40 << 10 // another rank takes it
		return []byte("MemAvailable: " + strconv.Itoa(left) + " kB\n"), nil
	}
	_, err = h.alloc(96 << 20)
	require.ErrorContains(t, err, "this host has ")
	require.Equal(t, before, taken(t, h), "what had been taken is given back")
}
