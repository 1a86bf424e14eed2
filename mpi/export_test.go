package mpi

import (
	"context"
	"testing"
	"unsafe"
)

// SetLimit makes calls of more than n elements large ones, for the rest of the test.
func SetLimit(t testing.TB, n int) {
	old := limit
	limit = n
	t.Cleanup(func() { limit = old })
}

// Libraries are the files to try under no launcher.
func Libraries() []string {
	return launch{family: anyFamily}.libraries(func(string) string { return "" })
}

// ShortVersion is the name and the number in a library's text.
var ShortVersion = shortVersion

// Alone is whether each rank moves its own bytes in ReadAtAll or WriteAtAll with a library of that version.
var Alone = alone

// Launcher is what the environment says, and the libraries that are tried.
func Launcher(getenv func(string) string) (name string, rank, size int, libraries []string, err error) {
	l, err := launcherOf(getenv)
	return l.name, l.rank, l.size, l.libraries(getenv), err
}

// Fits is whether a library of a family that sees such a world fits the environment.
func Fits(getenv func(string) string, f, rank, size int) error {
	l, err := launcherOf(getenv)
	if err == nil {
		err = l.fits(family(f), "X 1.0", "/x.so")
	}
	if err == nil {
		err = l.agrees(rank, size, "X 1.0", "/x.so")
	}
	return err
}

// Unchecked is Do without this package's checks, so that MPI makes its own.
func (c *Comm) Unchecked(ctx context.Context, k *Call) error {
	_, err := c.do(ctx, k)
	return err
}

// SetWants makes Init ask for a level.
func SetWants(l Level) { wants = l }

// SetMost makes transfers of more than n bytes go in pieces, for the rest of the test.
func SetMost(t testing.TB, n int) {
	old := most
	most = n
	t.Cleanup(func() { most = old })
}

// FailSize has f fail to learn the file's size once it has done so n times.
func FailSize(f *File, n int) {
	f.ask = func(op string) (int64, error) {
		if n--; n < 0 {
			return 0, failed(op, ErrIO, "a test's")
		}
		return f.sizeOf(op)
	}
}

// BytesOf is the memory of s.
func BytesOf[T Number](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*TypeOf[T]().Size())
}
