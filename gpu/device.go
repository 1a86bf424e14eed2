package gpu

import (
	"errors"
	"os"
	"strconv"
	"strings"

	rt "github.com/goccl/goccl/internal/gpu"
)

// Device is one of the visible devices of P. The zero Device is none.
type Device[P Platform] struct {
	_  [0]P // keeps platforms apart, in conversions too
	rt *rt.Runtime
	n  int
}

// At returns the visible device with number n. Its error says which devices there are.
func At[P Platform](n int) (Device[P], error) {
	return device[P](n, runtimeOf[P]().Has(n))
}

// device is visible device n, unless there is an error.
func device[P Platform](n int, err error) (Device[P], error) {
	if err != nil {
		return Device[P]{}, err
	}
	return Device[P]{rt: runtimeOf[P](), n: n}, nil
}

// Local returns the device of the rank that is number local of locals on its host. It is the device
// that a Comm takes by default: the one with number local, or the only one that the launcher has
// left visible. If there are more ranks than devices, it returns an error.
func Local[P Platform](local, locals int) (Device[P], error) {
	return device[P](runtimeOf[P]().Choose(-1, local, locals))
}

// Count returns the number of visible devices. No device is not an error.
func Count[P Platform]() (int, error) { return runtimeOf[P]().Count() }

// Devices returns all visible devices.
func Devices[P Platform]() ([]Device[P], error) {
	r := runtimeOf[P]()
	count, err := r.Count()
	if err != nil {
		return nil, err
	}
	all := make([]Device[P], count)
	for n := range all {
		all[n] = Device[P]{rt: r, n: n}
	}
	return all, nil
}

var errNoDevice = errors.New("the zero Device is not a device: get one from At, Local or Devices")

// ready is the library, for a call on d.
func (d Device[P]) ready() (rt.Driver, error) {
	if d.rt == nil {
		return nil, errNoDevice
	}
	return d.rt.Driver, nil
}

// check makes an error of the result of a call.
func (d Device[P]) check(c rt.Code, call string) error { return d.rt.Check(c, call, d.n) }

// Index returns the runtime's number for d, counted from 0.
func (d Device[P]) Index() int { return d.n }

// Platform returns "cuda" or "rocm".
func (d Device[P]) Platform() string {
	if d.rt == nil {
		return ""
	}
	return d.rt.Package
}

// String reads like "cuda:0".
func (d Device[P]) String() string { return d.Platform() + ":" + strconv.Itoa(d.n) }

// Name returns the vendor's name for d, such as "NVIDIA H200".
func (d Device[P]) Name() (string, error) {
	drv, err := d.ready()
	if err != nil {
		return "", err
	}
	name, c := drv.Name(d.n)
	return name, d.check(c, "GetDeviceProperties")
}

// Memory returns the free and the total memory of the device, in bytes.
func (d Device[P]) Memory() (free, total uint64, err error) {
	drv, err := d.ready()
	if err != nil {
		return 0, 0, err
	}
	free, total, c := drv.Memory(d.n)
	return free, total, d.check(c, "MemGetInfo")
}

// PCI returns the device's address on the PCI bus, as Linux writes it: "0000:1b:00.0". It identifies the device,
// whatever number each process gives it.
func (d Device[P]) PCI() (string, error) {
	drv, err := d.ready()
	if err != nil {
		return "", err
	}
	address, c := drv.Bus(d.n)
	return strings.ToLower(address), d.check(c, "DeviceGetPCIBusId")
}

// NUMA returns the NUMA node that the device is attached to, or -1 if the system does not say.
func (d Device[P]) NUMA() (int, error) {
	address, err := d.PCI()
	if err != nil {
		return -1, err
	}
	text, _ := os.ReadFile("/sys/bus/pci/devices/" + address + "/numa_node")
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1, nil
	}
	return node, nil
}

// Synchronize waits for all work that was issued to the device, on any stream.
func (d Device[P]) Synchronize() error {
	drv, err := d.ready()
	if err != nil {
		return err
	}
	return d.check(drv.Synchronize(d.n), "DeviceSynchronize")
}

// Owns returns an error if the driver says that p is not an address in the memory of d, and nil if
// it cannot tell. It is for addresses that come from outside: memory of this package knows its
// device.
func (d Device[P]) Owns(p uintptr) error {
	if _, err := d.ready(); err != nil {
		return err
	}
	return d.rt.Owns(d.n, p)
}
