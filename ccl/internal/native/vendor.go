//go:build nccl || rccl

package native

import (
	"sync"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/gpu"
)

// vendor is what there is to know about NCCL or RCCL, besides its engine.Backend. Versions are as
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
	lib  *library
	err  error
}

// other is another library, known by a symbol that it has, or lacks.
type other struct {
	symbol string
	lacks  bool
	title  string
	env    string
}

// searchFor is where a backend's library is looked for.
func searchFor(row *engine.Backend) dl.Search {
	return dl.Search{What: row.Title, Env: row.Files.Env, Names: row.Files.Names, Advice: row.Files.Advice}
}

// backend is row with v's engine. The device is the wanted one, or the one with this rank's number
// on its host: the library takes no two ranks on a device, unless it was set up to.
func (v *vendor) backend(row engine.Backend, devices engine.Devices) engine.Backend {
	row.Choose, row.Devices = v.runtime.Choose, devices
	row.Open = func() (*engine.Library, error) { return describe(v.load()) }
	return row
}

// load opens the library, once in a process.
func (v *vendor) load() (*library, error) {
	v.once.Do(func() { v.lib, v.err = v.open() })
	return v.lib, v.err
}
