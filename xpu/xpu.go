// Package xpu gives Go programs Intel's devices, and whatever else SYCL runs on: memory, queues and events. It opens a
// small shim over SYCL at run time, so building needs no SDK, and a program also starts where there is no SYCL.
//
// The build tag oneccl compiles it in, with cgo, on Linux. In other builds every call returns an [*Unavailable], and
// [Available] says so. SYCL is C++ and has no C interface. Therefore make xpu-shim builds one, libgocclxpu.so, with any
// C++ compiler where SYCL is installed. The package opens the file that GOCCL_XPU_LIB names, or else looks beside the
// program and on the loader's path.
//
//	d, err := xpu.Local(place.Local, place.Locals) // or xpu.At(0)
//	q, err := d.NewQueue()
//	x, err := xpu.Alloc[float32](d, 1<<20)
//	err = x.Put(data)
//	c.On(q).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
//	err = q.Synchronize()
//	err = x.Get(data)
//
// A *[Queue] is a ccl.Stream and a *[Mem] is a ccl.Memory. The package also works without ccl.
//
// The devices are the GPUs of Level Zero, numbered from 0, as ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY leave them.
// So on Aurora a device is a tile, or with COMPOSITE a card with two tiles. If ONEAPI_DEVICE_SELECTOR is set, the
// devices are all that it selects: opencl:cpu selects a CPU.
//
// Release what you make, by Free or Close. Later use, and a second release, return an error that says where the object
// was made and where it was released. [OnLeak] reports what was never released.
package xpu

import (
	"fmt"
	"strconv"

	"github.com/goccl/goccl/internal/sycl"
)

// Error is a failure inside SYCL: what its exception says.
type Error = sycl.Error

// Unavailable says why there is no SYCL in this process.
type Unavailable = sycl.Unavailable

// Available returns nil if SYCL can be used in this process, and otherwise an *Unavailable with the
// reason. It does not look for a device.
func Available() error {
	if err := sycl.Open(); err != nil {
		return fmt.Errorf("xpu: %w", err)
	}
	return nil
}

// Device is one of the visible devices.
type Device struct{ n int }

// devices are all visible ones, as SYCL describes them.
func devices() ([]sycl.Device, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	return sycl.Devices()
}

// Count returns the number of visible devices. No device is not an error.
func Count() (int, error) {
	all, err := devices()
	return len(all), err
}

// Devices returns all visible devices.
func Devices() ([]Device, error) {
	all, err := devices()
	if err != nil {
		return nil, err
	}
	list := make([]Device, len(all))
	for i := range list {
		list[i] = Device{i}
	}
	return list, nil
}

// At returns the visible device with number n. Its error says which devices there are.
func At(n int) (Device, error) {
	d := Device{n}
	if _, err := d.describe(); err != nil {
		return Device{}, err
	}
	return d, nil
}

// Local returns the device of the rank that is number local of locals on its host. It is the device
// that a Comm takes by default: the one with number local, or the only one that the launcher has
// left visible. If there are more ranks than devices, it returns an error.
func Local(local, locals int) (Device, error) {
	if err := Available(); err != nil {
		return Device{}, err
	}
	n, err := sycl.Choose(-1, local, locals)
	return Device{n}, err
}

// describe is what SYCL says of d.
func (d Device) describe() (sycl.Device, error) {
	all, err := devices()
	switch {
	case err != nil:
		return sycl.Device{}, err
	case d.n < 0 || d.n >= len(all):
		return sycl.Device{}, fmt.Errorf("xpu: no device %d: %s", d.n, sycl.Visible())
	}
	return all[d.n], nil
}

// Index is the number of d, from 0 on.
func (d Device) Index() int { return d.n }

// Platform is "xpu".
func (d Device) Platform() string { return "xpu" }

// String reads like "xpu:0".
func (d Device) String() string { return "xpu:" + strconv.Itoa(d.n) }

// Name is what the vendor calls it: "Intel(R) Data Center GPU Max 1550".
func (d Device) Name() (string, error) {
	s, err := d.describe()
	return s.Name, err
}

// Memory is what was free on the device when the program first asked for devices, and all that it has, in bytes. Where
// the driver does not tell what is free (ZES_ENABLE_SYSMAN=1 has it tell), free is 0.
func (d Device) Memory() (free, total uint64, err error) {
	s, err := d.describe()
	return s.Free, s.Memory, err
}

// PCI is the device's address on the PCI bus, as Linux writes it: "0000:1b:00.0"; "" for what has none. The two tiles
// of a card have the same.
func (d Device) PCI() (string, error) {
	s, err := d.describe()
	return s.PCI, err
}

// GPU reports whether d is a GPU.
func (d Device) GPU() (bool, error) {
	s, err := d.describe()
	return s.GPU, err
}
