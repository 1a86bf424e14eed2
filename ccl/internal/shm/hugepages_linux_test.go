package shm

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHugeSizeOf(t *testing.T) {
	for _, tc := range []struct {
		name, enabled, size string
		wanted              bool
		want                uintptr
	}{
		{"on request", "always [madvise] never\n", "2097152\n", true, 2 << 20},
		{"everywhere", "[always] madvise never\n", "2097152\n", true, 2 << 20},
		{"not by the administrator", "always madvise [never]\n", "2097152\n", true, 0},
		{"not by the user", "[always] madvise never\n", "2097152\n", false, 0},
		{"too large", "[always] madvise never\n", "536870912\n", true, 0},
		{"no such files", "", "", true, 0},
		{"no number", "[always]", "2 MiB", true, 0},
		{"negative", "[always]", "-1", true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, hugeSizeOf(tc.enabled, tc.size, tc.wanted))
		})
	}
}

// anonymous is n huge pages' worth of memory, with nothing on either side, of which no page is huge yet,
// and the first pages of each are there.
func anonymous(t testing.TB, n, pages int) []byte {
	t.Helper()
	size := int(hugeSize())
	if size == 0 {
		t.Skip("hardware: no transparent huge pages")
	}
	all, err := unix.MmapPtr(-1, 0, nil, uintptr((n+3)*size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.MunmapPtr(all, uintptr((n+3)*size)) })
	skip := size - int(uintptr(all)%uintptr(size))
	b := unsafe.Slice((*byte)(unsafe.Add(all, skip)), n*size)
	require.NoError(t, unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE))
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	require.NoError(t, err)
	everywhere := strings.Contains(string(enabled), "[always]")
	if everywhere {
		require.NoError(t, unix.Madvise(b, unix.MADV_NOHUGEPAGE))
	}
	for at := range b {
		if at%size < pages*os.Getpagesize() {
			b[at] = byte(at * 7)
		}
	}
	if everywhere {
		require.NoError(t, unix.Madvise(b, unix.MADV_HUGEPAGE))
	}
	if e := unix.Madvise(anyPage(t, size), unix.MADV_COLLAPSE); e != nil {
		t.Skipf("hardware: this kernel makes no huge page at once: %v", e)
	}
	return b
}

// anyPage is a huge page's worth of memory that is there.
func anyPage(t testing.TB, size int) []byte {
	t.Helper()
	all, err := unix.Mmap(-1, 0, 2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(all) })
	b := all[size-int(uintptr(unsafe.Pointer(&all[0]))%uintptr(size)):][:size]
	for at := range b {
		b[at] = 1
	}
	return b
}

// hugeBytes is how much of the mapping that b begins is in huge pages, and how much is there, as the kernel says.
func hugeBytes(t *testing.T, b []byte) (huge, there int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	require.NoError(t, err)
	defer f.Close()
	inside := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= uintptr(unsafe.Pointer(&b[0])) && uintptr(unsafe.Pointer(&b[0])) < to
		}
		if inside {
			_, _ = fmt.Sscanf(s.Text(), "AnonHugePages: %d kB", &huge)
			_, _ = fmt.Sscanf(s.Text(), "Rss: %d kB", &there)
		}
	}
	return huge << 10, there << 10
}

func TestHugePages(t *testing.T) {
	grown := hugeGrown.Load()
	t.Cleanup(func() { hugeGrown.Store(grown) })
	const kib = 1 << 10
	page := os.Getpagesize()
	for _, tc := range []struct {
		name    string
		n       int // huge pages' worth of memory
		pages   int // that are there, of each
		spare   int64
		read    func(b []byte) [][]byte
		huge    int
		spareBy int // what is used of it
	}{
		{"once", 2, 512, 0, func(b []byte) [][]byte { return [][]byte{b} }, 0, 0},
		{"twice", 2, 512, 0, func(b []byte) [][]byte { return [][]byte{b, b} }, 2, 0},
		{"many at once", hugeAtOnce + 1, 512, 0, func(b []byte) [][]byte { return [][]byte{b, b} }, hugeAtOnce, 0},
		{"many", hugeAtOnce + 1, 512, 0, func(b []byte) [][]byte { return [][]byte{b, b, b} }, hugeAtOnce + 1, 0},
		{"one of two", 2, 512, 0, func(b []byte) [][]byte { return [][]byte{b, b[:len(b)/2]} }, 1, 0},
		{"by pieces", 2, 512, 0, func(b []byte) (all [][]byte) {
			for range 63 {
				all = append(all, b[10*kib:][:64*kib])
			}
			return append(all, b[:64*kib], b[:1])
		}, 1, 0},
		{"not quite", 2, 512, 0, func(b []byte) (all [][]byte) {
			for range 63 {
				all = append(all, b[10*kib:][:64*kib])
			}
			return all
		}, 0, 0},
		{"what is not there is not spared", 2, 500, 11 * int64(page), func(b []byte) [][]byte { return [][]byte{b, b, b} }, 0, 0},
		{"it is for one", 2, 500, 23 * int64(page), func(b []byte) [][]byte { return [][]byte{b, b, b} }, 1, 12},
		{"it is for both", 2, 500, 25 * int64(page), func(b []byte) [][]byte { return [][]byte{b, b, b} }, 2, 24},
		{"nothing", 1, 512, 0, func([]byte) [][]byte { return [][]byte{nil, {}} }, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := anonymous(t, tc.n, tc.pages)
			if 512*page != int(hugeSize()) {
				t.Skip("hardware: huge pages of other sizes")
			}
			hugeGrown.Store(hugeSpare - tc.spare)
			_, before := hugeBytes(t, b)
			var h HugePages
			for _, r := range tc.read(b) {
				h.Add(r, HugeRead)
			}
			huge, after := hugeBytes(t, b)
			assert.Equal(t, tc.huge*int(hugeSize()), huge)
			assert.Equal(t, tc.spareBy*page, after-before, "memory")
			assert.Equal(t, int64(tc.spareBy*page), hugeGrown.Load()-hugeSpare+tc.spare)
			for at := range b {
				if want := byte(at * 7); at%int(hugeSize()) < tc.pages*page && b[at] != want {
					require.Equal(t, want, b[at], "byte %d", at)
				}
			}
		})
	}
}

// Memory that is only written into becomes huge later.
func TestHugePagesFilled(t *testing.T) {
	b := anonymous(t, 2, 512)
	var h HugePages
	for i := range HugeFilled {
		huge, _ := hugeBytes(t, b)
		require.Zero(t, huge, "after %d times", i)
		h.Add(b, HugeFilled)
	}
	huge, _ := hugeBytes(t, b)
	assert.Equal(t, 2*int(hugeSize()), huge)
}

// Memory whose huge page would take in what is not mapped stays as it is.
func TestHugePagesBesideNothing(t *testing.T) {
	b := anonymous(t, 1, 512)
	page := os.Getpagesize()
	require.NoError(t, unix.MunmapPtr(unsafe.Pointer(&b[len(b)-page]), uintptr(page)))
	var h HugePages
	for range 5 {
		h.Add(b[:len(b)-page], HugeRead)
	}
	huge, _ := hugeBytes(t, b)
	assert.Zero(t, huge)
}

// Two huge pages of the same place in the table take turns.
func TestHugePagesTakeTurns(t *testing.T) {
	b := anonymous(t, 1, 512)
	page := os.Getpagesize()
	var h HugePages
	h.Add(b[:page], HugeRead)
	e := &h.read[uintptr(unsafe.Pointer(&b[0]))/hugeSize()%hugeEntries]
	own := *e
	assert.Equal(t, uint64(page>>10), own&hugeDone)
	*e = hugeDone // of page 0
	h.Add(b[:page], HugeRead)
	assert.Equal(t, own, *e)
}

// What it takes to read memory with process_vm_readv, in pages and in huge pages.
func BenchmarkReadMemory(b *testing.B) {
	const readAtOnce = 512 << 10 // as the engine does
	for _, size := range []int{64 << 10, 256 << 10, 2 << 20, 16 << 20} {
		for _, huge := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/huge=%v", size, huge), func(b *testing.B) {
				from := anonymous(b, 16<<20/int(hugeSize()), 512)[:size]
				if huge {
					require.NoError(b, unix.Madvise(from[:cap(from)], unix.MADV_COLLAPSE))
				}
				to := make([]byte, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					for at := 0; at < size; at += readAtOnce {
						n := min(readAtOnce, size-at)
						if err := ReadMemory(int32(os.Getpid()), to[at:at+n], uint64(uintptr(unsafe.Pointer(&from[at])))); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
