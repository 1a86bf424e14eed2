package mail

import "sync"

// teller runs what callers want done when their messages end, in the order in which they end, on a
// goroutine of its own. So what runs may send and receive, however often: it is inside nothing that has
// ended a message.
type teller struct {
	mu      sync.Mutex
	due     []func()
	now     []func() // that are being run, from at on
	at      int
	running bool
	loop    func() // run, made once
}

// tell has f run.
func (t *teller) tell(f ...func()) {
	if len(f) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due = append(t.due, f...); t.running {
		return
	}
	if t.running = true; t.loop == nil {
		t.loop = t.run
	}
	go t.loop()
}

// run runs all there is, also after one that ends its goroutine (runtime.Goexit).
func (t *teller) run() {
	over := false
	defer func() {
		if !over {
			go t.loop()
		}
	}()
	for {
		f := t.next()
		if f == nil {
			over = true
			return
		}
		f()
	}
}

// next is what is to be run next. With nil, t runs no more.
func (t *teller) next() (f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == len(t.now) {
		t.due, t.now, t.at = t.now[:0], t.due, 0
	}
	if t.running = len(t.now) > 0; t.running {
		f, t.now[t.at] = t.now[t.at], nil
		t.at++
	}
	return f
}
