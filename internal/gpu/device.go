package gpu

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// Device is one of the devices that this process can see, by the runtime's number for it.
type Device struct {
	rt *Runtime
	n  int
}

// Device is visible device n. The error says which there are.
func (r *Runtime) Device(n int) (Device, error) {
	count, err := r.Count()
	if err != nil {
		return Device{}, err
	}
	if n < 0 || n >= count {
		return Device{}, r.errorf("there is no device %d: %s", n, r.visibleDevices(count))
	}
	return Device{r, n}, nil
}

// visibleDevices reads like: 2 devices are visible (CUDA_VISIBLE_DEVICES=0,1)
func (r *Runtime) visibleDevices(count int) string {
	switch count {
	case 0:
		return "no device is visible" + r.hidden()
	case 1:
		return "1 device is visible, device 0" + r.hidden()
	default:
		return strconv.Itoa(count) + " devices are visible, 0 to " + strconv.Itoa(count-1) + r.hidden()
	}
}

// Devices are all visible devices.
func (r *Runtime) Devices() ([]Device, error) {
	count, err := r.Count()
	if err != nil {
		return nil, err
	}
	all := make([]Device, count)
	for n := range all {
		all[n] = Device{r, n}
	}
	return all, nil
}

var errNoDevice = errors.New("the zero Device is not a device: get one from At, Local or Devices of package cuda or rocm")

// ready is the library, for a call on d.
func (d Device) ready() (driver, error) {
	if d.rt == nil {
		return nil, errNoDevice
	}
	if err := d.rt.Open(); err != nil {
		return nil, err
	}
	return d.rt.drv, nil
}

// Index returns the runtime's number for d, counted from 0.
func (d Device) Index() int { return d.n }

// Platform returns "cuda" or "rocm".
func (d Device) Platform() string {
	if d.rt == nil {
		return ""
	}
	return d.rt.pkg
}

// String reads like "cuda:0".
func (d Device) String() string { return d.Platform() + ":" + strconv.Itoa(d.n) }

// Name returns the vendor's name for d, such as "NVIDIA H200".
func (d Device) Name() (string, error) {
	drv, err := d.ready()
	if err != nil {
		return "", err
	}
	name, c := drv.name(d.n)
	return name, d.rt.check(c, "GetDeviceProperties", d.n)
}

// Memory returns the free and the total memory of the device, in bytes.
func (d Device) Memory() (free, total uint64, err error) {
	drv, err := d.ready()
	if err != nil {
		return 0, 0, err
	}
	free, total, c := drv.memory(d.n)
	return free, total, d.rt.check(c, "MemGetInfo", d.n)
}

// PCI returns the device's address on the PCI bus, as Linux writes it: "0000:1b:00.0". It identifies the device,
// whatever number each process gives it.
func (d Device) PCI() (string, error) {
	drv, err := d.ready()
	if err != nil {
		return "", err
	}
	address, c := drv.bus(d.n)
	return strings.ToLower(address), d.rt.check(c, "DeviceGetPCIBusId", d.n)
}

// NUMA returns the NUMA node that the device is attached to, or -1 if the system does not say.
func (d Device) NUMA() (int, error) {
	address, err := d.PCI()
	if err != nil {
		return -1, err
	}
	text, err := os.ReadFile("/sys/bus/pci/devices/" + address + "/numa_node")
	if err != nil {
		return -1, nil
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1, nil
	}
	return node, nil
}

// Synchronize waits for all work that was issued to the device, on any stream.
func (d Device) Synchronize() error {
	drv, err := d.ready()
	if err != nil {
		return err
	}
	return d.rt.check(drv.synchronize(d.n), "DeviceSynchronize", d.n)
}
