package engine

// Registrar is an Engine whose library moves faster what lies in memory that it was told of. A version that lacks a call
// returns a *Lacks.
type Registrar interface {
	// Register tells the library of memory until Deregister or Close. Every rank registers its own.
	Register(addr uintptr, bytes int) (handle uintptr, err error)
	Deregister(handle uintptr) error
}

// Allocator is a Library that has memory of its own, which its communicators move faster.
type Allocator interface {
	// Alloc makes memory on a device. It lives until Free, whatever becomes of communicators.
	Alloc(device, bytes int) (addr uintptr, err error)
	Free(device int, addr uintptr) error
	// Windows is nil, or a *Lacks where this version makes no symmetric windows.
	Windows() error
}

// Windower is an Engine whose library makes symmetric windows.
type Windower interface {
	// Window makes one of memory of Alloc. All ranks call it with as many bytes; it waits for them, and Abort ends that. The
	// handle is 0 where the library makes no window here.
	Window(addr uintptr, bytes int) (handle uintptr, err error)
	// CloseWindow is local.
	CloseWindow(handle uintptr) error
}

// Accountant is an Engine whose library says how much memory of the device it has allocated for the
// communicator. A version that lacks the call returns a *Lacks.
type Accountant interface {
	Allocated() (bytes uint64, err error)
}

// Lacks is the error of a call that this version of a library does not have.
type Lacks struct{ Library, Call, Since string }

func (e *Lacks) Error() string { return e.Library + " has no " + e.Call + "; that needs " + e.Since }
