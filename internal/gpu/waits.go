package gpu

import "sync"

// waits is who wants to know that a stream was found to have nothing left to run.
type waits struct {
	mu    sync.Mutex
	begun []func() func()
}

// OnSync has begun called whenever Synchronize, Query or Wait asks the device about s, and what begun returned once
// the device has said that s has passed all that it held then. A begun that returns nil is forgotten.
func (s *Stream) OnSync(begun func() func()) {
	s.waits.begin() // forgets those that are over
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	s.waits.begun = append(s.waits.begun, begun)
}

// begin is what to call once the stream has passed what it holds now.
func (w *waits) begin() (passed []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	live := w.begun[:0]
	for _, begun := range w.begun {
		if f := begun(); f != nil {
			live, passed = append(live, begun), append(passed, f)
		}
	}
	clear(w.begun[len(live):])
	w.begun = live
	return passed
}

// call calls all of passed.
func call(passed []func()) {
	for _, f := range passed {
		f()
	}
}
