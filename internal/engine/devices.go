package engine

import (
	"errors"
	"time"
)

// Devices are the devices of a backend for a program that knows no vendor: bench. It is empty for a
// library of host memory.
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

// Clock times what is issued to the stream between Start and Stop, by the device's own events. Took
// waits for Stop without an end: it is for when the calls before it are done.
type Clock struct {
	Start, Stop func() error
	Took        func() (time.Duration, error)
}

// OpenDevice makes a Device of one of packages cuda, rocm or xpu, with a stream, which it returns
// as well, and a clock. How it makes memory and graphs is the caller's to add.
func OpenDevice[S interface {
	Handle() (uintptr, bool)
	Close() error
}, E interface {
	Record(S) error
	Synchronize() error
	Since(E) (time.Duration, error)
	Close() error
}](d interface {
	Index() int
	Name() (string, error)
	PCI() (string, error)
}, newStream func() (S, error), newEvent func() (E, error)) (*Device, S, error) {
	s, err := newStream()
	if err != nil {
		return nil, s, err
	}
	from, err := newEvent()
	if err != nil {
		return nil, s, errors.Join(err, s.Close())
	}
	to, err := newEvent()
	if err != nil {
		return nil, s, errors.Join(err, from.Close(), s.Close())
	}
	opened := &Device{
		Number: d.Index(), Stream: s,
		Clock: Clock{
			Start: func() error { return from.Record(s) },
			Stop:  func() error { return to.Record(s) },
			Took: func() (time.Duration, error) {
				if err := to.Synchronize(); err != nil {
					return 0, err
				}
				return to.Since(from)
			},
		},
		Close: func() error { return errors.Join(to.Close(), from.Close(), s.Close()) },
	}
	opened.Name, _ = d.Name()
	opened.PCI, _ = d.PCI()
	return opened, s, nil
}

// BlockOf is b as a Block, nil beside an error.
func BlockOf[B Block](b B, err error) (Block, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}
