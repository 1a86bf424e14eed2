package reduce

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/op"
)

// fenced is a page between two that may not be touched.
func fenced(t *testing.T) []byte {
	size := os.Getpagesize()
	m, err := unix.Mmap(-1, 0, 3*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(m)) })
	require.NoError(t, unix.Mprotect(m[:size], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(m[2*size:], unix.PROT_NONE))
	return m[size : 2*size]
}

// TestNothingIsReadOutside has vectors that begin or end where memory does: a read
// beyond them, even one that is thrown away, is a fault.
func TestNothingIsReadOutside(t *testing.T) {
	pages := [3][]byte{fenced(t), fenced(t), fenced(t)}
	eachLevel(t, func(t *testing.T) {
		eachFunc(func(f Func, typ op.Type, o op.Op) {
			for n := range 4096/typ.Size() + 1 {
				if n > 140 && n < 4096/typ.Size()-70 {
					continue
				}
				var first, last [3]unsafe.Pointer
				for i, p := range pages {
					first[i] = unsafe.Pointer(&p[0])
					last[i] = unsafe.Add(first[i], len(p)-n*typ.Size())
				}
				f(first[0], first[1], first[2], n)
				f(last[0], last[1], last[2], n)
				Scale(typ)(first[0], n, 3)
				Scale(typ)(last[0], n, 3)
				Stream(first[0], first[1], n*typ.Size())
				Stream(last[0], last[1], n*typ.Size())
				if all := ForSumAll(typ, o); all != nil {
					all(first[0], first[1:], n)
					all(last[0], last[1:], n)
				}
			}
		})
	})
}
