package gpu

import "unsafe"

// code is a cudaError_t or hipError_t. Those named here are the same in both.
type code int

const (
	success            code = 0
	noMemory           code = 2
	insufficientDriver code = 35
	noDevice           code = 100
	notReady           code = 600
	peerEnabled        code = 704
	peerNotEnabled     code = 705
	// absent is ours: the library has no such function.
	absent code = -1
)

// kind is a kind of memory.
type kind int

const (
	onDevice kind = iota
	managed       // one address for host and device
	pinned        // host memory that devices read and write directly
)

// driver is the library. Each method is one call into C, which sets the device where one is given; it knows
// no owner and checks nothing. Addresses of Go memory are unsafe.Pointers and used only during the call.
type driver interface {
	table() unsafe.Pointer
	path() string
	fake() bool
	text(code) (name, text string)

	versions() (driver, runtime int, c code)
	count() (int, code)
	name(dev int) (string, code)
	bus(dev int) (string, code)
	memory(dev int) (free, total uint64, c code)
	synchronize(dev int) code
	canAccess(dev, peer int) (bool, code)
	enablePeer(dev, peer int) code
	disablePeer(dev, peer int) code

	alloc(dev int, k kind, bytes int) (uintptr, code)
	free(dev int, k kind, p uintptr) code
	put(dev int, dst uintptr, src unsafe.Pointer, bytes int) code
	get(dev int, dst unsafe.Pointer, src uintptr, bytes int) code
	copy(dev int, dst, src uintptr, bytes int) code
	copyAsync(dev int, stream, dst, src uintptr, bytes int) code
	set(dev int, dst uintptr, v byte, bytes int) code
	setAsync(dev int, stream, dst uintptr, v byte, bytes int) code
	pointer(dev int, p uintptr) (typ, on int, c code)

	newStream(dev int) (uintptr, code)
	closeStream(dev int, stream uintptr) code
	syncStream(dev int, stream uintptr) code
	queryStream(dev int, stream uintptr) code
	waitEvent(dev int, stream, event uintptr) code

	newEvent(dev int, timing bool) (uintptr, code)
	closeEvent(dev int, event uintptr) code
	record(dev int, event, stream uintptr) code
	queryEvent(dev int, event uintptr) code
	syncEvent(dev int, event uintptr) code
	elapsed(dev int, from, to uintptr) (ms float32, c code)

	beginCapture(dev int, stream uintptr) code
	endCapture(dev int, stream uintptr) (graph uintptr, c code)
	capturing(dev int, stream uintptr) (bool, code)
	launch(dev int, graph, stream uintptr) code
	closeGraph(dev int, graph uintptr) code

	// programs are what loads kernels of r's.
	programs(r *Runtime) (programs, error)
}
