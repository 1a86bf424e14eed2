package engine

// Registrar is an Engine whose library moves faster what lies in memory that it allocated, or that it
// was told of. A version that lacks a call returns a *Lacks.
type Registrar interface {
	Alloc(bytes int) (addr uintptr, err error)
	Free(addr uintptr) error
	// Register tells the library of memory until Deregister or Close. Every rank registers its own.
	Register(addr uintptr, bytes int) (handle uintptr, err error)
	Deregister(handle uintptr) error
}

// Lacks is the error of a call that this version of a library does not have.
type Lacks struct{ Library, Call, Since string }

func (e *Lacks) Error() string { return e.Library + " has no " + e.Call + ": that takes " + e.Since }
