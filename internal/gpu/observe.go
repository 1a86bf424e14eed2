package gpu

import (
	"slices"
	"sync"
)

// Observer is told what becomes of the work of a stream. It is an alias, of types without names, so that package ccl
// needs to know no package of devices.
type Observer = interface {
	// Live is false once there is nothing more to tell.
	Live() bool
	// Syncing is called when Synchronize, Query or Wait asks the device about the stream, and what it returns, if anything,
	// once the device has said that the stream has passed all that it held then.
	Syncing() (passed func())
	// Closing is called before the stream is closed, while its handle is still good.
	Closing()
	// Capturing is called when a capture begins, on any stream of the runtime, and what it returns when that has ended. own: it
	// is this stream's, and not one that may take it in.
	// This again returns what is to be called whenever the graph is launched, with the stream: nil if nothing of the
	// observer's was captured.
	Capturing(own bool) (ended func() (launched func(on interface{ Handle() (uintptr, bool) })))
}

// launched is what an Observer wants to hear of a graph.
type launched = func(on interface{ Handle() (uintptr, bool) })

// observers are those of a stream, or of all streams of a runtime.
type observers struct {
	mu  sync.Mutex
	all []Observer
}

func (o *observers) add(x Observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(slices.DeleteFunc(o.all, over), x)
}

// live are those that still want to hear.
func (o *observers) live() []Observer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.all, over) {
		o.all = slices.DeleteFunc(slices.Clone(o.all), over) // others range over the slice that was
	}
	return o.all
}

func over(x Observer) bool { return !x.Live() }

// Observe tells o of what becomes of the work of s, for as long as o is live.
func (s *Stream) Observe(o Observer) {
	s.observers.add(o)
	s.rt.observers.add(o)
}

// syncing is what to call once s has passed what it holds now.
func (s *Stream) syncing() (passed []func()) {
	for _, o := range s.observers.live() {
		if f := o.Syncing(); f != nil {
			passed = append(passed, f)
		}
	}
	return passed
}

// call calls all of passed.
func call(passed []func()) {
	for _, f := range passed {
		f()
	}
}

// capture is what is being captured from a stream.
type capture struct {
	mu    sync.Mutex
	under bool
	ended []func() launched
}

// Capturing reports whether a stream of r is being captured, by BeginCapture.
func (r *Runtime) Capturing() bool { return r.capturing.Load() > 0 }

// HoldCaptures is false while a stream of r is being captured; else no capture begins until ReleaseCaptures. Nothing that may wait for
// a stream belongs in between.
func (r *Runtime) HoldCaptures() bool {
	r.begins.RLock()
	if r.Capturing() {
		r.begins.RUnlock()
		return false
	}
	return true
}

// ReleaseCaptures ends what HoldCaptures began.
func (r *Runtime) ReleaseCaptures() { r.begins.RUnlock() }

// beginCapture notes that s is being captured.
func (s *Stream) beginCapture() {
	var ended []func() launched
	own := s.observers.live()
	for _, o := range s.rt.observers.live() {
		if f := o.Capturing(slices.Contains(own, o)); f != nil {
			ended = append(ended, f)
		}
	}
	s.capture.mu.Lock()
	defer s.capture.mu.Unlock()
	s.capture.under, s.capture.ended = true, ended
}

// endCapture is what to call at each launch of the graph.
func (s *Stream) endCapture() (hear []launched) {
	s.capture.mu.Lock()
	under, ended := s.capture.under, s.capture.ended
	s.capture.under, s.capture.ended = false, nil
	s.capture.mu.Unlock()
	if !under {
		return nil
	}
	s.rt.capturing.Add(-1)
	for _, f := range ended {
		if g := f(); g != nil {
			hear = append(hear, g)
		}
	}
	return hear
}
