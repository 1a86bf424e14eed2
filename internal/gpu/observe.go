package gpu

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Observer is told what becomes of the work of a stream. It is an alias, of types without names, so that package ccl
// needs to know no package of devices.
type Observer = interface {
	// Live is false once there is nothing more to tell.
	Live() bool
	// Syncing is called when Synchronize, Query or Wait asks the device about the stream, and what it
	// returns, if anything, once the device has said that the stream has passed all that it held then.
	Syncing() (passed func())
	// Closing is called before the stream is closed, while its handle is still good.
	Closing()
	// Capturing is called when a capture begins, on any stream of the runtime; ended is called when
	// the capture has ended. own: the capture is of this stream, and not of another stream that
	// this one may join. This again returns what is to be called whenever the graph is launched,
	// with the stream: nil if nothing of the observer's was captured.
	Capturing(own bool) (ended func() (launched func(on interface{ Handle() (uintptr, bool) })))
}

// Launched is what an Observer wants to hear of a graph.
type Launched = func(on interface{ Handle() (uintptr, bool) })

// Observers are those of a stream, or of all streams of a runtime.
type Observers struct {
	mu  sync.Mutex
	all []Observer
}

// Add has x told as well.
func (o *Observers) Add(x Observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(slices.DeleteFunc(o.all, over), x)
}

// Live are those that still want to hear.
func (o *Observers) Live() []Observer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.all, over) {
		o.all = slices.DeleteFunc(slices.Clone(o.all), over) // others range over the slice that was
	}
	return o.all
}

func over(x Observer) bool { return !x.Live() }

// captures are those of a runtime's streams that are under way.
type captures struct {
	begins sync.RWMutex // held while one begins, and shared by HoldCaptures
	under  atomic.Int32
}

// Capturing reports whether a stream of r is being captured, by BeginCapture.
func (r *Runtime) Capturing() bool { return r.captures.under.Load() > 0 }

// HoldCaptures is false while a stream of r is being captured; else no capture begins until
// ReleaseCaptures. Nothing that may wait for a stream belongs in between.
func (r *Runtime) HoldCaptures() bool {
	r.captures.begins.RLock()
	if r.Capturing() {
		r.captures.begins.RUnlock()
		return false
	}
	return true
}

// ReleaseCaptures ends what HoldCaptures began.
func (r *Runtime) ReleaseCaptures() { r.captures.begins.RUnlock() }

// CaptureBegins notes a capture, before it begins: nobody is to ask for an event then.
func (r *Runtime) CaptureBegins() {
	r.captures.begins.Lock()
	r.captures.under.Add(1)
	r.captures.begins.Unlock()
}

// CaptureEnds notes that a capture is over, or has not begun.
func (r *Runtime) CaptureEnds() { r.captures.under.Add(-1) }
