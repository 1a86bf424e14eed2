package gpu

import "unsafe"

// Code is a cudaError_t or hipError_t. Those named here are the same in both.
type Code int

const (
	Success            Code = 0
	NoMemory           Code = 2
	insufficientDriver Code = 35
	noDevice           Code = 100
	NotReady           Code = 600
	PeerEnabled        Code = 704
	PeerNotEnabled     Code = 705
	// Absent is ours: the library has no such function.
	Absent Code = -1
)

// Kind is a kind of memory.
type Kind int

const (
	OnDevice Kind = iota
	Managed       // one address for host and device
	Pinned        // host memory that devices read and write directly
)

// Driver is the library. Each method is one call into C, which sets the device where one is given; it knows
// no owner and checks nothing. Addresses of Go memory are unsafe.Pointers and used only during the call.
type Driver interface {
	Table() unsafe.Pointer
	Path() string
	Fake() bool
	Text(Code) (name, text string)

	Versions() (driver, runtime int, c Code)
	Count() (int, Code)
	Name(dev int) (string, Code)
	Bus(dev int) (string, Code)
	Memory(dev int) (free, total uint64, c Code)
	Synchronize(dev int) Code
	CanAccess(dev, peer int) (bool, Code)
	EnablePeer(dev, peer int) Code
	DisablePeer(dev, peer int) Code

	Alloc(dev int, k Kind, bytes int) (uintptr, Code)
	Free(dev int, k Kind, p uintptr) Code
	Put(dev int, dst uintptr, src unsafe.Pointer, bytes int) Code
	Get(dev int, dst unsafe.Pointer, src uintptr, bytes int) Code
	CopyAsync(dev int, stream, dst, src uintptr, bytes int) Code
	Set(dev int, dst uintptr, v byte, bytes int) Code
	SetAsync(dev int, stream, dst uintptr, v byte, bytes int) Code
	Pointer(dev int, p uintptr) (typ, on int, c Code)

	NewStream(dev int) (uintptr, Code)
	CloseStream(dev int, stream uintptr) Code
	SyncStream(dev int, stream uintptr) Code
	QueryStream(dev int, stream uintptr) Code
	WaitEvent(dev int, stream, event uintptr) Code

	NewEvent(dev int, timing bool) (uintptr, Code)
	CloseEvent(dev int, event uintptr) Code
	Record(dev int, event, stream uintptr) Code
	QueryEvent(dev int, event uintptr) Code
	SyncEvent(dev int, event uintptr) Code
	Elapsed(dev int, from, to uintptr) (ms float32, c Code)

	BeginCapture(dev int, stream uintptr) Code
	EndCapture(dev int, stream uintptr) (graph uintptr, c Code)
	Capturing(dev int, stream uintptr) (bool, Code)
	Launch(dev int, graph, stream uintptr) Code
	CloseGraph(dev int, graph uintptr) Code

	// Programs returns what loads kernels of r's.
	Programs(r *Runtime) (Programs, error)
}

// MaxParams is how many parameters a kernel may have.
const MaxParams = 64

// Programs are what the driver does with modules. Each method is one call into C.
type Programs interface {
	Load(dev int, image []byte) (module uintptr, log string, c Code)
	Unload(dev int, module uintptr) Code
	// Function also returns the sizes of the parameters; nil if the driver does not tell.
	Function(dev int, module uintptr, name string) (function uintptr, sizes []int, c Code)
	// Start takes arrays by value: what goes through an interface by address is allocated.
	Start(dev int, stream, function uintptr, dims [6]uint32, shared int, values [MaxParams]uint64, n int) Code
}
