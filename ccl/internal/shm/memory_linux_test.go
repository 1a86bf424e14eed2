package shm

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

// taken is how much memory the host has.
func taken(t *testing.T, h *Host) int {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(h.fd, &st))
	return int(st.Blocks * 512)
}

// freeBytes is how much of a host's space can be handed out.
func freeBytes(h *Host) int {
	n := uint64(0)
	for _, r := range h.own.space.ranges() {
		n += r.Pages()
	}
	return int(n) * Page
}

// A rank that was stopped while it wrote goes on when the call has failed: what it writes then is lost, and nothing else
// is, wherever in a slice the result lies.
func TestTakeBack(t *testing.T) {
	for _, tc := range []struct {
		name              string
		slice, from, n    int
		replaced, inPages int // from there on, so many pages
	}{
		{"all of a slice", 5*Page + 100, 0, 5*Page + 100, 0, 6},
		{"whole pages", 8 * Page, 2 * Page, 3 * Page, 2, 3},
		{"both edges shared", 8 * Page, Page + 8, 4*Page + 16, 2, 3},
		{"to the end of the slice", 3*Page + 8, Page + 8, 2 * Page, 2, 2},
		{"from the beginning", 3 * Page, 0, Page + 64, 0, 1},
		{"in a page", 3 * Page, Page + 64, 128, 0, 0},
		{"across two pages", 3 * Page, Page - 64, 128, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, err := NewShared()
			require.NoError(t, err)
			defer h.Close()
			before, room := taken(t, h), freeBytes(h)
			mem, err := MakeMemory(h, tc.slice)
			require.NoError(t, err)
			for i := range mem {
				mem[i] = 1
			}
			place := h.SpanOf(mem)
			theirs, err := h.View(place.Base, int(place.Size)) // as another process has it
			require.NoError(t, err)

			dst := mem[tc.from : tc.from+tc.n]
			own := h.SpanOf(dst)
			lead, tail := own.Edges(tc.n)
			require.True(t, TakeBack(dst))
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
			for at := 0; at < tc.slice; at += Page {
				p := at / Page
				b := mem[at:min(at+Page, tc.slice)]
				where := h.SpanOf(b)
				require.NotZero(t, where.Size, "page %d is not shared", p)
				if p < tc.replaced || p >= tc.replaced+tc.inPages {
					require.Equal(t, Span{place.Base, place.Size, uint64(at)}, where, "page %d", p)
					theirs[at]++
					require.Equal(t, theirs[at], b[0])
					continue
				}
				again, err := h.View(where.Base, int(where.Size))
				require.NoError(t, err)
				again[where.At]++
				require.Equal(t, again[where.At], b[0])
				h.Drop(PlaceAt(where.Base, int(where.Size)))
			}
			h.Drop(PlaceAt(place.Base, int(place.Size)))
			FreeMemory(unsafe.Pointer(&mem[0]))
			require.Nil(t, memoryAt(mem))
			// A piece that the stopped rank writes late may be there again; its place is not used any more.
			require.LessOrEqual(t, taken(t, h), before+tc.inPages*Page)
			require.Equal(t, room-tc.inPages*Page, freeBytes(h))
		})
	}
}

// While a part of a slice is taken back, a program works in the pages of that part's edges.
func TestTakeBackLosesNothingBeside(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	for range 100 {
		mem, err := MakeMemory(h, 6*Page)
		require.NoError(t, err)
		beside := []*uint64{(*uint64)(unsafe.Pointer(&mem[Page])), (*uint64)(unsafe.Pointer(&mem[5*Page-8]))}
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
		require.True(t, TakeBack(mem[Page+8:5*Page-8]))
		until(steps.Load() + 100)
		stop.Store(true)
		<-done
		FreeMemory(unsafe.Pointer(&mem[0]))
	}
}

// All that was handed out comes back: however much in total, and what is refused.
func TestHostGivesBack(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	h.own.space.next.Store(memfdBytes - 4<<20) // as after a terabyte
	left := freeBytes(h)
	for i := range 200 {
		off, err := h.Alloc(1 << 20)
		require.NoError(t, err, "%d", i)
		mem, err := h.View(off, 1<<20)
		require.NoError(t, err)
		require.Zero(t, mem[i], "memory is zero")
		mem[i] = 1
		h.Drop(PlaceAt(off, 1<<20))
		h.Free(off, 1<<20)
	}
	_, err = h.Alloc(2 << 40)
	require.ErrorContains(t, err, "shared memory: 2147483648 KiB were requested, more than is left of the 1024 GiB that the ranks of a host can share")
	systemSays(t, func() ([]byte, error) { return []byte("MemTotal: 9 kB\nMemAvailable:       2000 kB\n"), nil })
	_, err = h.Alloc(1 << 20)
	require.EqualError(t, err, "shared memory: 1024 KiB are needed, but this host has 2000 KiB of memory left; free memory or use fewer ranks")
	require.Equal(t, left, freeBytes(h))
}

// A system without memory to spare does not refuse, but kills: so MakeSlice looks first.
func TestSliceBeyondTheMemoryOfTheHost(t *testing.T) {
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
		systemSays(t, func() ([]byte, error) { return []byte(tc.text), tc.err })
		for name, host := range map[string]func() (*Host, error){"shared": NewShared, "private": func() (*Host, error) { return NewPrivate(64), nil }} {
			h, err := host()
			require.NoError(t, err)
			mem, err := MakeMemory(h, 64<<20)
			if tc.want {
				require.NoError(t, err, "%s: %q", name, tc.text)
				FreeMemory(unsafe.Pointer(&mem[0]))
			} else {
				require.ErrorContains(t, err, "shared memory: 65536 KiB are needed, but this host has ", "%s: %q", name, tc.text)
			}
			h.Close()
		}
	}
}

// Of memory that ranks take at the same moment, each step sees what the others have taken.
func TestReserveStepByStep(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	before, left := taken(t, h), 200<<10 // KiB
	systemSays(t, func() ([]byte, error) {
		left -= 40 << 10 // another rank takes it
		return []byte("MemAvailable: " + strconv.Itoa(left) + " kB\n"), nil
	})
	_, err = h.Alloc(96 << 20)
	require.ErrorContains(t, err, "this host has ")
	require.Equal(t, before, taken(t, h), "what had been taken is given back")
}

// A slice may outlive its host, and be the result of a call of a later job that fails: its memory is replaced without what the
// closed host had, whose header is unmapped, and whose descriptor may be another file's by now.
func TestTakeBackOfAClosedHost(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	mem, err := MakeMemory(h, 4*Page)
	require.NoError(t, err)
	defer FreeMemory(unsafe.Pointer(&mem[0]))
	for i := range mem {
		mem[i] = 1
	}
	old := h.Descriptor()
	h.Close()
	fd, err := unix.MemfdCreate("another", 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.Equal(t, old, fd, "the kernel hands out the least")
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = 7
	}
	_, err = unix.Pwrite(fd, content, 0)
	require.NoError(t, err)

	require.True(t, TakeBack(mem[Page:3*Page]))
	require.EqualValues(t, 1, mem[0])
	require.EqualValues(t, 1, mem[4*Page-1])
	mem[Page] = 2
	got := make([]byte, len(content))
	_, err = unix.Pread(fd, got, 0)
	require.NoError(t, err)
	require.Equal(t, content, got, "nothing was punched into the other file")
}
