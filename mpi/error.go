package mpi

import (
	"fmt"
	"io"
	"io/fs"
)

// Class says what kind of error it is. A Class is itself an error, as syscall.Errno is, so
// that errors.Is(err, mpi.ErrRoot) asks for it.
type Class uint8

// The classes: those of MPI, ErrOther for the rest of them, then those of this package.
const (
	ErrOther Class = iota
	ErrBuffer
	ErrCount
	ErrType
	ErrTag
	ErrComm
	ErrRank
	ErrRequest
	ErrRoot
	ErrOp
	ErrArg
	ErrTruncate
	ErrNoMem
	ErrState     // before Init, after Finalize, Init twice
	ErrLibrary   // no MPI library, or not one that fits the launcher
	ErrThread    // the library's thread level is too low
	ErrAbandoned // a call's context ended and MPI cannot take the call back

	// Those of files and hints are MPI's again.
	ErrFile // not an open file: it was closed
	ErrAmode
	ErrNotSame // the ranks differ where they must agree
	ErrNoSuchFile
	ErrFileExists
	ErrBadFile // a bad name
	ErrAccess
	ErrNoSpace
	ErrQuota
	ErrReadOnly
	ErrFileInUse
	ErrIO
	ErrInfo
	ErrInfoKey
	ErrInfoValue
	ErrUnsupported
	ErrEOF // the file ended before the memory was full; not an error of MPI's
	classEnd
)

// Is makes errors.Is(err, fs.ErrNotExist) and the like true of the classes that mean the same.
func (c Class) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return c == ErrNoSuchFile
	case fs.ErrExist:
		return c == ErrFileExists
	case fs.ErrPermission:
		return c == ErrAccess || c == ErrReadOnly
	case fs.ErrClosed:
		return c == ErrFile
	case io.EOF:
		return c == ErrEOF
	}
	return false
}

// ofMPI reports whether MPI has c, and a name for it.
func (c Class) ofMPI() bool { return c < ErrState || c >= ErrFile && c < ErrEOF }

// Error names the class, as MPI does where it has it.
func (c Class) Error() string {
	if c >= classEnd {
		return fmt.Sprintf("mpi.Class(%d)", uint8(c))
	}
	return [...]string{
		"MPI_ERR_OTHER", "MPI_ERR_BUFFER", "MPI_ERR_COUNT", "MPI_ERR_TYPE", "MPI_ERR_TAG", "MPI_ERR_COMM", "MPI_ERR_RANK",
		"MPI_ERR_REQUEST", "MPI_ERR_ROOT", "MPI_ERR_OP", "MPI_ERR_ARG", "MPI_ERR_TRUNCATE", "MPI_ERR_NO_MEM",
		"wrong state", "no fitting library", "thread level too low", "abandoned",
		"MPI_ERR_FILE", "MPI_ERR_AMODE", "MPI_ERR_NOT_SAME", "MPI_ERR_NO_SUCH_FILE", "MPI_ERR_FILE_EXISTS",
		"MPI_ERR_BAD_FILE",
		"MPI_ERR_ACCESS", "MPI_ERR_NO_SPACE", "MPI_ERR_QUOTA", "MPI_ERR_READ_ONLY", "MPI_ERR_FILE_IN_USE", "MPI_ERR_IO",
		"MPI_ERR_INFO", "MPI_ERR_INFO_KEY", "MPI_ERR_INFO_VALUE", "MPI_ERR_UNSUPPORTED_OPERATION", "end of file",
	}[c]
}

// Error is what went wrong in one call.
type Error struct {
	Op    string // the function: "Bcast"
	Class Class
	Code  int    // the library's own; 0 where this package refused
	Text  string // the library's own text, or this package's
	Err   error  // the cause, if any: the context's error
	File  string // the name of the file that the call was about; "" for other calls
}

// Error reads like: mpi: Bcast: Invalid root (value given was 9) (MPI_ERR_ROOT)
func (e *Error) Error() string {
	s := "mpi: " + e.Op
	if e.File != "" {
		s += " " + e.File
	}
	s += ": " + e.Text
	if e.Class.ofMPI() {
		s += " (" + e.Class.Error() + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is the Class and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Err}
}

func failed(op string, c Class, format string, args ...any) *Error {
	return &Error{Op: op, Class: c, Text: fmt.Sprintf(format, args...)}
}
