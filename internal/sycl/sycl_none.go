//go:build !(oneccl && cgo && linux)

package sycl

import (
	"errors"
	"runtime"
	"unsafe"
)

// notBuilt is why this build has no SYCL.
func notBuilt() error {
	switch {
	case !tagged:
		return errors.New("SYCL is not compiled in: build with -tags oneccl")
	case runtime.GOOS != "linux":
		return errors.New("SYCL is opened only on Linux")
	}
	return errors.New("SYCL needs cgo, which this program was built without: build it with CGO_ENABLED=1 and a C compiler")
}

func open() error                                        { return notBuilt() }
func count() (int, error)                                { return 0, notBuilt() }
func describe(int) (Device, error)                       { return Device{}, notBuilt() }
func NewQueue(int, bool) (Queue, error)                  { return 0, notBuilt() }
func (Queue) Close() error                               { return notBuilt() }
func (Queue) Wait() error                                { return notBuilt() }
func (Queue) Empty() (bool, error)                       { return false, notBuilt() }
func (Queue) After(Event) error                          { return notBuilt() }
func (Queue) Copy(dst, src uintptr, bytes int) error     { return notBuilt() }
func (Queue) Put(uintptr, unsafe.Pointer, int) error     { return notBuilt() }
func (Queue) Get(unsafe.Pointer, uintptr, int) error     { return notBuilt() }
func (Queue) Set(dst uintptr, v byte, bytes int) error   { return notBuilt() }
func New(dev int, kind Kind, bytes int) (uintptr, error) { return 0, notBuilt() }
func Free(dev int, p uintptr) error                      { return notBuilt() }
func KindOf(dev int, p uintptr) (Kind, error)            { return Unknown, notBuilt() }
func NewEvent() (Event, error)                           { return 0, notBuilt() }
func (Event) Close() error                               { return notBuilt() }
func (Event) Record(Queue) error                         { return notBuilt() }
func (Event) Done() (bool, error)                        { return false, notBuilt() }
func (Event) Wait() error                                { return notBuilt() }
func (Event) Since(Event) (seconds float64, err error)   { return 0, notBuilt() }
func Table() unsafe.Pointer                              { return nil }
