package ckpt

import (
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A file is the same whether its writes go past the page cache, through it, or turn out not to be able to: with one block
// less a byte, one, one and a byte, and in writes that do not end where blocks do.
func TestCreate(t *testing.T) {
	for _, n := range []int{0, 1, block - 1, block, block + 1, 2*block + 4097} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * i >> 7)
		}
		for i, d := range []*disk{{}, {direct: true}, {direct: true}} {
			name := filepath.Join(t.TempDir(), "x")
			s, err := d.write(name, func(w io.Writer) error {
				if s := w.(*summer); i == 2 && s.buf != nil { // an address that no direct write takes
					s.buf = make([]byte, block+2*4096)
					s.buf = s.buf[1+4096-int(uintptr(unsafe.Pointer(&s.buf[0]))%4096):][:block]
				}
				_, err := w.Write(b[:n/3])
				if err == nil {
					_, err = w.Write(b[n/3:])
				}
				return err
			})
			require.NoError(t, err)
			require.EqualValues(t, n, s.n)
			got, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, crc32.ChecksumIEEE(b), crc32.ChecksumIEEE(got), "%d bytes", n)
			require.Len(t, got, n)
			for k, sum := range s.sums {
				require.Equal(t, crc32.Checksum(b[k*block:min(n, (k+1)*block)], castagnoli), sum)
			}
			_, err = d.write(name, func(io.Writer) error { return nil })
			require.ErrorIs(t, err, os.ErrExist)
			require.FileExists(t, name, "which was there before")
		}
	}
}
