package mat

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fenced returns n numbers that end where memory does, and n that begin there.
func fenced(t *testing.T, n int) (first, last []float32) {
	page := os.Getpagesize()
	size := (4*n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(m)) })
	require.NoError(t, unix.Mprotect(m[:page], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(m[page+size:], unix.PROT_NONE))
	all := unsafe.Slice((*float32)(unsafe.Pointer(&m[page])), size/4)
	return all[:n], all[len(all)-n:]
}

// A read beyond a slice, even one that is thrown away, is a fault here.
func TestNothingIsReadOutside(t *testing.T) {
	const most = 40 * 40
	var first, last [5][]float32
	for i := range first {
		first[i], last[i] = fenced(t, most)
	}
	eachLevel(t, func(string) {
		for _, m := range [][5][]float32{first, last} {
			end := &m[0][0] == &last[0][0]
			cut := func(i, n int) []float32 {
				if end {
					return m[i][most-n:]
				}
				return m[i][:n]
			}
			for _, n := range []int{1, 15, 16, 17, 33, 100} {
				a, b, c, d, e := cut(0, n), cut(1, n), cut(2, n), cut(3, n), cut(4, n)
				Exp(a, 0, 1)
				Gelu(a, b, c)
				GeluBack(a, b, c)
				Add(a, b)
				Scale(a, 2)
				Softmax(a, 1)
				SoftmaxBack(a, b, 1)
				CrossEntropy(a, n-1)
				Norm(a, b, c[:1], d, e)
				NormBack(a, e[:1], b, c, d, e)
				third.Apply(a, b, c, d)
			}
			for _, s := range [][3]int{{1, 1, 1}, {12, 32, 9}, {13, 33, 40}, {40, 40, 40}, {7, 17, 5}, {28, 40, 24}, {38, 32, 15}} {
				for form := range 4 {
					Mul(form&1 > 0, form&2 > 0, s[0], s[1], s[2], cut(0, s[0]*s[2]), cut(1, s[1]*s[2]), cut(2, s[0]*s[1]))
				}
			}
		}
	})
}
