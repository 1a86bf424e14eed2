package gpu

import (
	"slices"
	"sync"

	rt "github.com/goccl/goccl/internal/gpu"
)

// Observer is told what becomes of the work of a stream: package ccl's are.
type Observer = rt.Observer

// Observe tells o of what becomes of the work of s, for as long as o is live.
func (s *Stream[P]) Observe(o Observer) {
	s.observers.Add(o)
	s.rt.Observers.Add(o)
}

// syncing is what to call once s has passed what it holds now.
func (s *Stream[P]) syncing() (passed []func()) {
	for _, o := range s.observers.Live() {
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
	ended []func() rt.Launched
}

// beginCapture notes that s is being captured.
func (s *Stream[P]) beginCapture() {
	var ended []func() rt.Launched
	own := s.observers.Live()
	for _, o := range s.rt.Observers.Live() {
		if f := o.Capturing(slices.Contains(own, o)); f != nil {
			ended = append(ended, f)
		}
	}
	s.capture.mu.Lock()
	defer s.capture.mu.Unlock()
	s.capture.under, s.capture.ended = true, ended
}

// endCapture is what to call at each launch of the graph.
func (s *Stream[P]) endCapture() (hear []rt.Launched) {
	s.capture.mu.Lock()
	under, ended := s.capture.under, s.capture.ended
	s.capture.under, s.capture.ended = false, nil
	s.capture.mu.Unlock()
	if !under {
		return nil
	}
	s.rt.CaptureEnds()
	for _, f := range ended {
		if g := f(); g != nil {
			hear = append(hear, g)
		}
	}
	return hear
}
