//go:build !mpi || !cgo

package mpi

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The file of one rank, without MPI. The functions are those of file_mpi.go.

type fileHandle = *os.File

func noFiles() *Error { return nil }

func (c *Comm) openFile(name string, mode Mode, _ string) (fileHandle, error) {
	flags := map[Mode]int{ReadOnly: os.O_RDONLY, WriteOnly: os.O_WRONLY,
		ReadWrite: os.O_RDWR}[mode&(ReadOnly|WriteOnly|ReadWrite)]
	if mode&Create != 0 {
		flags |= os.O_CREATE
	}
	if mode&Excl != 0 {
		flags |= os.O_EXCL
	}
	h, err := os.OpenFile(name, flags, 0o666)
	return h, ofSystem(err)
}

func (f *File) closeFile() error {
	err := f.handle.Close()
	if f.mode&DeleteOnClose != 0 {
		err = errors.Join(err, os.Remove(f.name))
	}
	return ofSystem(err)
}

func (f *File) setSize(bytes int64) error { return ofSystem(f.handle.Truncate(bytes)) }

func (f *File) sync() error { return ofSystem(f.handle.Sync()) }

func (f *File) sizeOf(op string) (int64, error) {
	info, err := f.handle.Stat()
	if e, ok := ofSystem(err).(*Error); ok {
		return 0, f.error(op, e)
	}
	return info.Size(), nil
}

func (f *File) transfer(t *transfer, piece []byte, offset int64) (n int, err error) {
	if t.write {
		n, err = f.handle.WriteAt(piece, offset)
	} else {
		n, err = f.handle.ReadAt(piece, offset)
	}
	if err == io.EOF {
		err = nil
	}
	return n, ofSystem(err)
}

// ofSystem is err with the class that MPI has for it.
func ofSystem(err error) error {
	if err == nil {
		return nil
	}
	class := ErrIO
	for _, known := range []struct {
		err   error
		class Class
	}{
		{fs.ErrNotExist, ErrNoSuchFile}, {fs.ErrExist, ErrFileExists}, {fs.ErrPermission, ErrAccess},
		{syscall.EROFS, ErrReadOnly}, {syscall.ENOSPC, ErrNoSpace}, {syscall.ENAMETOOLONG, ErrBadFile},
		{syscall.EISDIR, ErrBadFile},
	} {
		if errors.Is(err, known.err) {
			class = known.class
		}
	}
	return failed("", class, "%v", err)
}
