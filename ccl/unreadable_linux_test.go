package ccl_test

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// secret is memory that the kernel lets no process but this one read, as is that of drivers.
func secret(t testing.TB, n int) []int32 {
	fd, _, e := unix.Syscall(unix.SYS_MEMFD_SECRET, unix.O_CLOEXEC, 0, 0)
	if e != 0 {
		t.Skipf("hardware: no memfd_secret(2): %v", e)
	}
	defer unix.Close(int(fd))
	require.NoError(t, unix.Ftruncate(int(fd), int64(4*n)))
	b, err := unix.Mmap(int(fd), 0, 4*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil { // which RLIMIT_MEMLOCK limits
		t.Skipf("hardware: memfd_secret(2): %v", err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), n)
}

// All calls work on memory that no other process can read, on one rank or on all, whether processes read each other's memory or
// not; and the Comm reads what can be read as before.
func TestMemoryThatCannotBeRead(t *testing.T) {
	const most = 300_000 // elements
	secret(t, 2*most)    // or all ranks skip
	for _, read := range []string{"0", "1"} {
		for _, n := range []int{2, 3} {
			for _, all := range []bool{false, true} {
				t.Run(fmt.Sprintf("GOCCL_SHM_READ=%s, %d ranks, all %v", read, n, all), func(t *testing.T) {
					t.Setenv("GOCCL_SHM_READ", read)
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
						dst, src := make([]int32, most), make([]int32, most)
						if all || c.Rank() == 0 {
							dst, src = secret(t, most), secret(t, most)
						}
						for _, count := range []int{1000, 20_000, 100_000} {
							for _, root := range []int{0, n - 1} {
								unreadableCalls(t, c, dst, src, count, root)
							}
						}
					}, ccltest.Processes(n))
				})
			}
		}
	}
}

// unreadableCalls makes every call on count elements of dst and src, and looks at the results.
func unreadableCalls(t testing.TB, c *ccl.Comm, dst, src []int32, count, root int) {
	ctx, n, me := context.Background(), c.Size(), c.Rank()
	value := func(r, i int) int32 { return int32(r*1_000_000 + i%9973) }
	sum := func(i int) (s int32) {
		for r := range n {
			s += value(r, i)
		}
		return s
	}
	next, last := (me+1)%n, (me+n-1)%n
	counts := make([]int, n)
	for r := range counts {
		counts[r] = count / n
	}
	each := count / n * n // what divides among the ranks
	for _, tc := range []struct {
		name    string
		call    func(dst, src []int32) error
		dst     int               // elements of the result
		src     int               // of the operand
		want    func(i int) int32 // element i of the result
		inPlace bool
	}{
		{"AllReduce", func(dst, src []int32) error { return ccl.AllReduce(ctx, c, dst, src, ccl.Sum) }, count, count, sum, false},
		{"AllReduce in place", func(dst, src []int32) error { return ccl.AllReduce(ctx, c, dst, dst, ccl.Sum) }, count, count, sum, true},
		{"Reduce", func(dst, src []int32) error { return ccl.Reduce(ctx, c, dst, src, ccl.Sum, root) }, count * is(me == root), count, sum, false},
		{"ReduceScatter", func(dst, src []int32) error { return ccl.ReduceScatter(ctx, c, dst, src, ccl.Sum) }, each / n, each,
			func(i int) int32 { return sum(me*each/n + i) }, false},
		{"Broadcast", func(dst, src []int32) error { return ccl.Broadcast(ctx, c, dst, root) }, count, count,
			func(i int) int32 { return value(root, i) }, true},
		{"AllGather", func(dst, src []int32) error { return ccl.AllGather(ctx, c, dst, src) }, each, each / n,
			func(i int) int32 { return value(i/(each/n), i%(each/n)) }, false},
		{"Gather", func(dst, src []int32) error { return ccl.Gather(ctx, c, dst, src, root) }, each * is(me == root), each / n,
			func(i int) int32 { return value(i/(each/n), i%(each/n)) }, false},
		{"Scatter", func(dst, src []int32) error { return ccl.Scatter(ctx, c, dst, src, root) }, each / n, each * is(me == root),
			func(i int) int32 { return value(root, me*each/n+i) }, false},
		{"AllToAll", func(dst, src []int32) error { return ccl.AllToAll(ctx, c, dst, src) }, each, each,
			func(i int) int32 { return value(i/(each/n), me*each/n+i%(each/n)) }, false},
		{"AllToAllV", func(dst, src []int32) error { return ccl.AllToAllV(ctx, c, dst, counts, src, counts) }, each, each,
			func(i int) int32 { return value(i/(each/n), me*each/n+i%(each/n)) }, false},
		{"SendRecv", func(dst, src []int32) error { return ccl.SendRecv(ctx, c, dst, last, src, next) }, count, count,
			func(i int) int32 { return value(last, i) }, false},
		{"SendRecv in place", func(dst, src []int32) error { return ccl.SendRecv(ctx, c, dst, last, dst, next) }, count, count,
			func(i int) int32 { return value(last, i) }, true},
		{"Send and Recv", func(dst, src []int32) error {
			switch me {
			case root:
				return ccl.Send(ctx, c, src, next)
			case (root + 1) % n:
				return ccl.Recv(ctx, c, dst, root)
			}
			return nil
		}, count * is(me == (root+1)%n), count, func(i int) int32 { return value(root, i) }, false},
	} {
		for range 2 {
			dst, src := dst[:tc.dst], src[:tc.src]
			clear(dst)
			operand := src
			if tc.inPlace {
				operand = dst
			}
			for i := range operand {
				operand[i] = value(me, i)
			}
			require.NoError(t, tc.call(dst, src), "%s of %d, root %d", tc.name, count, root)
			for i, x := range dst {
				if x != tc.want(i) {
					t.Fatalf("%s of %d, root %d: element %d is %d, not %d", tc.name, count, root, i, x, tc.want(i))
				}
			}
		}
	}
}

func is(b bool) int {
	if b {
		return 1
	}
	return 0
}
