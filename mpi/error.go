package mpi

import "fmt"

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
	classEnd
)

// Error names the class, as MPI does where it has it.
func (c Class) Error() string {
	if c >= classEnd {
		return fmt.Sprintf("mpi.Class(%d)", uint8(c))
	}
	return [...]string{
		"MPI_ERR_OTHER", "MPI_ERR_BUFFER", "MPI_ERR_COUNT", "MPI_ERR_TYPE", "MPI_ERR_TAG", "MPI_ERR_COMM", "MPI_ERR_RANK",
		"MPI_ERR_REQUEST", "MPI_ERR_ROOT", "MPI_ERR_OP", "MPI_ERR_ARG", "MPI_ERR_TRUNCATE", "MPI_ERR_NO_MEM",
		"wrong state", "no fitting library", "thread level too low", "abandoned",
	}[c]
}

// Error is what went wrong in one call.
type Error struct {
	Op    string // the function: "Bcast"
	Class Class
	Code  int    // the library's own; 0 where this package refused
	Text  string // the library's own text, or this package's
	Err   error  // the cause, if any: the context's error
}

// Error reads like: mpi: Bcast: Invalid root (value given was 9) (MPI_ERR_ROOT)
func (e *Error) Error() string {
	s := "mpi: " + e.Op + ": " + e.Text
	if e.Class < ErrState {
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

func refused(k Kind, c Class, format string, args ...any) *Error {
	return failed(k.String(), c, format, args...)
}

func failed(op string, c Class, format string, args ...any) *Error {
	return &Error{Op: op, Class: c, Text: fmt.Sprintf(format, args...)}
}
