package gpu

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/environ"
)

// Runtime is CUDA's or HIP's runtime library. A process has one of each, CUDA and HIP.
type Runtime struct {
	Package string   // "cuda" or "rocm", as errors begin
	name    string   // "CUDA": for people
	vendor  string   // "NVIDIA", whose driver it needs
	prefix  string   // of the library's functions
	tag     string   // that compiles it in
	env     string   // that names the file
	libs    []string // that are tried otherwise, newest first
	advice  string   // what to do where there is none
	visible []string // variables that hide devices

	// Driver is the library: nil until Open, and where that failed.
	Driver Driver
	// Observers are those of all its streams.
	Observers Observers

	tagged   bool // set by init where the tag is
	once     sync.Once
	err      error
	captures captures
}

// CUDA is NVIDIA's runtime, compiled in by the tag nccl.
var CUDA = &Runtime{
	name:    "CUDA",
	vendor:  "NVIDIA",
	Package: "cuda",
	prefix:  "cuda",
	tag:     "nccl",
	env:     environ.CUDALib.Name,
	// The driver does for the runtime where there is no runtime: cudriver.c.
	libs:    []string{"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so", "libcuda.so.1"},
	advice:  "install NVIDIA's driver, or the CUDA runtime (libcudart) 11, 12 or 13",
	visible: []string{"CUDA_VISIBLE_DEVICES"},
}

// HIP is AMD's runtime, compiled in by the tag rccl.
var HIP = &Runtime{
	name:    "HIP",
	vendor:  "AMD",
	Package: "rocm",
	prefix:  "hip",
	tag:     "rccl",
	env:     environ.HIPLib.Name,
	libs:    []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
	advice:  "install ROCm's HIP runtime (libamdhip64) 5, 6 or 7",
	visible: []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
}

// Name is "CUDA" or "HIP".
func (r *Runtime) Name() string { return r.name }

// Open loads the library, once in a process; later calls return what the first has. An error is an
// [*Unavailable].
func (r *Runtime) Open() error {
	r.once.Do(func() {
		if r.Driver, r.err = open(r); r.err != nil {
			r.Driver = nil
		}
	})
	return r.err
}

// Table is the library's functions, a *gdev of include/gdev.h in C memory, for C code elsewhere in this module;
// nil if Open has not succeeded. It is never freed.
func (r *Runtime) Table() unsafe.Pointer {
	if r.Open() != nil {
		return nil
	}
	return r.Driver.Table()
}

// Path is the file that was opened, as it was named; "" if none.
func (r *Runtime) Path() string {
	if r.Open() != nil {
		return ""
	}
	return r.Driver.Path()
}

// Fake reports whether the library is the one for tests, which computes on host memory.
func (r *Runtime) Fake() bool { return r.Open() == nil && r.Driver.Fake() }

// Versions are the driver's and the runtime's, as the library encodes them: 13000 is CUDA 13.0, 60443484
// is HIP 6.4.43484.
func (r *Runtime) Versions() (driver, runtime int, err error) {
	if err := r.Open(); err != nil {
		return 0, 0, err
	}
	driver, runtime, code := r.Driver.Versions()
	return driver, runtime, r.Check(code, "RuntimeGetVersion", -1)
}

// Count is the number of visible devices. A machine without any is no error, unless the
// driver says more than that.
func (r *Runtime) Count() (int, error) {
	if err := r.Open(); err != nil {
		return 0, err
	}
	n, c := r.Driver.Count()
	switch c {
	case noDevice:
		return 0, nil // CUDA has not written n then
	case insufficientDriver:
		// The same code for a driver that is too old and for none at all.
		if driver, _, _ := r.Driver.Versions(); driver == 0 {
			_, text := r.Driver.Text(c)
			return 0, r.unavailable("no %s driver is loaded on this machine (%sGetDeviceCount: %s)", r.vendor, r.prefix, text)
		}
	}
	return n, r.Check(c, "GetDeviceCount", -1)
}

// Has is an error if device n is not visible. It says which are.
func (r *Runtime) Has(n int) error {
	count, err := r.Count()
	if err == nil && (n < 0 || n >= count) {
		err = r.Errorf("there is no device %d: %s", n, r.visibleDevices(count))
	}
	return err
}

// visibleDevices reads like: 2 devices are visible (CUDA_VISIBLE_DEVICES=0,1)
func (r *Runtime) visibleDevices(count int) string {
	switch count {
	case 0:
		return "no device is visible" + r.hidden()
	case 1:
		return "1 device is visible, device 0" + r.hidden()
	default:
		return fmt.Sprintf("%d devices are visible, 0 to %d%s", count, count-1, r.hidden())
	}
}

// Unavailable says why there is no runtime in this process.
type Unavailable struct {
	Runtime string // "CUDA"
	Reason  string
	Err     error // the cause, if there is one apart from Reason
}

func (e *Unavailable) Error() string { return e.Reason }
func (e *Unavailable) Unwrap() error { return e.Err }

func (r *Runtime) unavailable(format string, args ...any) error {
	err := fmt.Errorf(r.Package+": "+format, args...)
	return &Unavailable{Runtime: r.name, Reason: err.Error(), Err: errors.Unwrap(err)}
}

// notBuilt is the error of a build that cannot have r.
func (r *Runtime) notBuilt() error {
	if r.tagged {
		return r.unavailable("built with -tags %s, but without cgo, which is needed to open %s; build with CGO_ENABLED=1 and a C compiler, on Linux", r.tag, r.libs[0])
	}
	return r.unavailable("this program was built without %s; build it with -tags %s", r.name, r.tag)
}

// hidden lists the variables that choose devices and are set, as text that follows a number of devices.
func (r *Runtime) hidden() string {
	text := ""
	for _, name := range r.visible {
		if v, ok := os.LookupEnv(name); ok {
			text += fmt.Sprintf(", %s=%s", name, v)
		}
	}
	if text == "" {
		return ""
	}
	return " (" + text[2:] + ")"
}
