package ccl_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// secret is memory that the kernel lets no process but this one read, as is that of drivers.
func secret(t testing.TB, n int) []float64 {
	fd, _, e := unix.Syscall(unix.SYS_MEMFD_SECRET, unix.O_CLOEXEC, 0, 0)
	if e != 0 {
		t.Skipf("hardware: no memfd_secret(2): %v", e)
	}
	defer unix.Close(int(fd))
	require.NoError(t, unix.Ftruncate(int(fd), int64(8*n)))
	b, err := unix.Mmap(int(fd), 0, 8*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil { // which RLIMIT_MEMLOCK limits
		t.Skipf("hardware: memfd_secret(2): %v", err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n)
}

// All calls work on memory that no other process can read, on one rank or on all, whether processes read each other's memory or
// not; and the Comm reads what can be read as before.
func TestMemoryThatCannotBeRead(t *testing.T) {
	const most = 250_000 // elements
	secret(t, most)      // or all ranks skip
	for _, read := range []string{"0", "1"} {
		for _, n := range []int{2, 3} {
			for _, all := range []bool{false, true} {
				if testing.Short() && all == (n == 3) {
					continue
				}
				t.Run(fmt.Sprintf("GOCCL_SHM_READ=%s, %d ranks, all %v", read, n, all), func(t *testing.T) {
					t.Setenv("GOCCL_SHM_READ", read)
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
						var own []float64
						if all || c.Rank() == 0 {
							own = secret(t, most)
						}
						unreadableCalls(t, c, own)
					}, ccltest.Processes(n))
				})
			}
		}
	}
}

// unreadableCalls makes every call, in place and not, in own, unless that is nil.
func unreadableCalls(t testing.TB, c *ccl.Comm, own []float64) {
	number := uint64(0)
	for _, count := range []int{500, 10_000, 40_000} {
		for _, root := range []int{0, c.Size() - 1} {
			for _, kind := range kinds {
				for _, inPlace := range []bool{false, true} {
					number++
					s := shape{kind: kind, op: ccl.Sum, root: root, count: count, number: number, inPlace: inPlace}
					if s.uneven(c.Size()); inPlace && !s.canBeInPlace() && kind != ccl.KindSendRecv {
						continue
					}
					require.NoError(t, playIn(t.Context(), c, s, func(n int) []float64 { return own[:min(n, len(own))] }))
				}
			}
		}
	}
}
