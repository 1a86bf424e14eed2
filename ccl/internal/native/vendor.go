//go:build nccl || rccl

package native

import (
	"sync"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/gpu"
)

// vendor is what there is to know about NCCL or RCCL, and the engine.Backend of it. Versions are as
// ncclGetVersion encodes them: 22803 is 2.28.3.
type vendor struct {
	name, title string
	search      dl.Search
	runtime     *gpu.Runtime
	prefix      string // of the device runtime's functions
	oldest      int
	fp8         int   // the first version with 8-bit floats
	fp8Level    int64 // the compute capability from which on it reduces them
	queryBreaks bool  // to ask the runtime for an event breaks a capture, of whatever mode, on any thread
	launchOrder bool  // it has launchOrderImplicit, as NCCL's headers do
	// currentDevice: a call may need the communicator's device to be the thread's.
	currentDevice bool
	others        []other // that may be taken for it

	once sync.Once
	lib  engine.Library
	err  error
}

// other is another library, known by a symbol that it has, or lacks.
type other struct {
	symbol string
	lacks  bool
	title  string
	env    string
}

// Name is what Options.Backend calls it.
func (v *vendor) Name() string { return v.name }

// Open loads the library, once in a process.
func (v *vendor) Open() (engine.Library, error) {
	v.once.Do(func() { v.lib, v.err = v.open() })
	return v.lib, v.err
}

// Device is the wanted device, or the one with this rank's number on its host: the library takes no two ranks
// on a device, unless it was set up to.
func (v *vendor) Device(want, local, locals int) (int, error) {
	return v.runtime.Choose(want, local, locals)
}
