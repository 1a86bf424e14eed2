//go:build mpi && cgo

package mpi

/*
#include <stdlib.h>
#include "gmpi.h"
#cgo noescape gmpi_on_file
#cgo nocallback gmpi_on_file
*/
import "C"

import "unsafe"

// fileHandle is an MPI_File.
type fileHandle = uintptr

// noFiles is nil, or what the library lacks of MPI-IO.
func noFiles() *Error {
	if missing := C.gmpi_no_files(); missing != nil {
		return failed("", ErrUnsupported, "%s (%s) has no %s: it was built without MPI-IO", process.version, process.path,
			C.GoString(missing))
	}
	return nil
}

// openFile is MPI_File_open, without the turn, as all that follows but sizeOf.
func (c *Comm) openFile(name string, mode Mode, hints string) (fileHandle, error) {
	path, info := C.CString(name), C.CString(hints+"\x00")
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(info))
	k := C.gmpi_file{what: C.GMPI_FILE_OPEN, mode: C.int32_t(mode),
		name: C.uintptr_t(uintptr(unsafe.Pointer(path))), hints: C.uintptr_t(uintptr(unsafe.Pointer(info)))}
	k.call.comm = C.uintptr_t(c.handle)
	if C.gmpi_on_file(&k) != 0 {
		return 0, failure("OpenFile", &k.call)
	}
	return uintptr(k.file), nil
}

func (f *File) do(op string, what C.int32_t, n int64) (int64, error) {
	k := C.gmpi_file{what: what, file: C.uintptr_t(f.handle), n: C.int64_t(n)}
	if C.gmpi_on_file(&k) != 0 {
		return 0, failure(op, &k.call)
	}
	return int64(k.n), nil
}

func (f *File) closeFile() error {
	_, err := f.do("Close", C.GMPI_FILE_CLOSE, 0)
	return err
}

func (f *File) setSize(bytes int64) error {
	_, err := f.do("SetSize", C.GMPI_FILE_SET_SIZE, bytes)
	return err
}

func (f *File) sync() error {
	_, err := f.do("Sync", C.GMPI_FILE_SYNC, 0)
	return err
}

func (f *File) sizeOf(op string) (int64, error) {
	n, err := f.do(op, C.GMPI_FILE_GET_SIZE, 0)
	if e, ok := err.(*Error); ok {
		return 0, f.error(op, e)
	}
	return n, nil
}

// transfer moves one piece, and returns how much the library says it has moved.
func (f *File) transfer(t *transfer, piece []byte, offset int64) (int, error) {
	what := C.int32_t(C.GMPI_FILE_READ)
	if t.write {
		what = C.GMPI_FILE_WRITE
	}
	if t.all && !alone(process.version, t.write) {
		what++
	}
	k := C.gmpi_file{what: what, file: C.uintptr_t(f.handle), offset: C.int64_t(offset), n: C.int64_t(len(piece)),
		memory: C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(piece))))}
	if C.gmpi_on_file(&k) != 0 {
		return 0, failure(t.op, &k.call)
	}
	return int(k.n), nil
}
