package engine

import "time"

// Devices are the devices of a backend for a program that knows no vendor: bench. It is empty for a library of host memory.
type Devices struct {
	Count func() (int, error) // those that this process sees
	// Open opens the device of the rank which is the local-th of locals on its host: number at where that is not negative.
	Open func(at, local, locals int) (*Device, error)
}

// Device is an open device with a stream of its own.
type Device struct {
	Number    int
	PCI, Name string
	Stream    interface {
		Handle() (h uintptr, ok bool)
	}
	Alloc func(managed bool, bytes int) (Block, error)
	At    func(addr uintptr, bytes int) (Block, error) // memory that somebody else has made; nil where there is none
	Clock Clock
	// Capture makes a graph of what issue puts on the stream. It is nil where there are no graphs.
	Capture func(issue func() error) (launch, close func() error, err error)
	Close   func() error
}

// Block is memory of a device.
type Block interface {
	Ptr() (addr uintptr, ok bool)
	Device() int
	Platform() string
	Put(src []uint8) error
	Get(dst []uint8) error
	Slice() ([]uint8, error) // of managed memory
	Free() error
}

// Clock times what is issued to the stream between Start and Stop, by the device's own events. Took waits for Stop without an
// end: it is for when the calls before it are done.
type Clock struct {
	Start, Stop func() error
	Took        func() (time.Duration, error)
}

// ClockOf makes a clock of two events on s.
func ClockOf[S any, E interface {
	Record(S) error
	Synchronize() error
	Since(E) (time.Duration, error)
}](s S, from, to E) Clock {
	return Clock{
		Start: func() error { return from.Record(s) },
		Stop:  func() error { return to.Record(s) },
		Took: func() (time.Duration, error) {
			if err := to.Synchronize(); err != nil {
				return 0, err
			}
			return to.Since(from)
		},
	}
}
