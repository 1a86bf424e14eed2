package engine

// Registrar is an Engine whose library moves faster what lies in memory that it allocated, or that it
// was told of. A version that lacks the calls returns an error that says so.
type Registrar interface {
	Alloc(bytes int) (addr uintptr, err error)
	Free(addr uintptr) error
	// Register tells the library of memory until Deregister or Close. Every rank registers its own.
	Register(addr uintptr, bytes int) (handle uintptr, err error)
	Deregister(handle uintptr) error
}
