//go:build fault

package chaos

import (
	"bytes"
	"context"
	"math/rand/v2"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
)

// arena is where the slices of a rank lie, one in each call, between guards.
type arena struct {
	mem     []byte
	sort    int
	from, n int // of the slice under way
}

// Sorts of memory.
const (
	ofGo = iota
	ofMakeSlice
	mapped
	secret // which no other process can read, if the kernel has such memory
	memorySorts
)

const (
	arenaBytes = 3 << 20
	guard      = 0xa5
	scribble   = 0x3c
)

// arenasOf are two of each sort. All ranks make them at the same time.
func arenasOf(ctx context.Context, c *ccl.Comm) (all [memorySorts][2]*arena, err error) {
	for sort := range all {
		for i := range all[sort] {
			a := &arena{sort: sort}
			switch sort {
			case ofGo:
				a.mem = make([]byte, arenaBytes)
			case ofMakeSlice:
				if a.mem, err = ccl.MakeSlice[byte](ctx, c, arenaBytes); err != nil {
					return all, err
				}
			default:
				a.renew()
			}
			a.fill(guard)
			all[sort][i] = a
		}
	}
	return all, nil
}

// renew maps the memory of an arena anew, at any address, which may be another's old one.
func (a *arena) renew() {
	if a.sort != mapped && a.sort != secret {
		return
	}
	if a.mem != nil {
		_ = unix.Munmap(a.mem)
	}
	if a.sort == secret {
		if fd, _, e := unix.Syscall(unix.SYS_MEMFD_SECRET, unix.O_CLOEXEC, 0, 0); e == 0 {
			err := unix.Ftruncate(int(fd), arenaBytes)
			if err == nil {
				a.mem, err = unix.Mmap(int(fd), 0, arenaBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			}
			unix.Close(int(fd))
			if err == nil {
				a.fill(guard)
				return
			}
		}
	}
	var err error
	if a.mem, err = unix.Mmap(-1, 0, arenaBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		panic(err)
	}
	a.fill(guard)
}

func (a *arena) fill(x byte) { set(a.mem, x) }

// set makes all of b x: by copies, which the race detector looks at but once each.
func set(b []byte, x byte) {
	if len(b) == 0 {
		return
	}
	b[0] = x
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// place is room for n bytes at an offset that suits elements of so many, seldom the beginning of a page.
func (a *arena) place(rnd *rand.Rand, n, elem int) []byte {
	a.from, a.n = (64+rnd.IntN(12<<10))/elem*elem, n
	if rnd.IntN(6) == 0 {
		a.from = 4 << 10
	}
	return a.mem[a.from : a.from+n : a.from+n]
}

// intact reports whether nothing beside the slice has changed, and makes all of it guards again.
func (a *arena) intact() bool {
	before, behind := a.mem[:a.from], a.mem[a.from+a.n:][:64<<10]
	ok := isAll(before, guard) && isAll(behind, guard)
	set(a.mem[a.from:a.from+a.n], guard)
	return ok
}

func isAll(b []byte, x byte) bool { return bytes.Count(b, []byte{x}) == len(b) }

// all reports whether all of it is x.
func (a *arena) all(x byte) bool { return isAll(a.mem, x) }

func int32s(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
