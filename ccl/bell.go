package ccl

import (
	"runtime"
	"slices"
	"sync"
)

// bell wakes all goroutines that wait for something under a mutex, as a sync.Cond does, but a wait
// ends with a context, too. Waiting allocates nothing once as many have waited at a time as ever
// do. The zero bell is ready.
type bell struct {
	waiting, idle []chan struct{} // of room for one
}

// glances is how often a waiter gives way and looks again before it sleeps. What it waits for is mostly on its way: a
// sleep costs two switches of threads, a look that finds nothing else to run some 100 ns.
const glances = 32

// ring wakes all waiters. The mutex that they gave to wait is held.
func (b *bell) ring() {
	for i, ch := range b.waiting {
		ch <- struct{}{}
		b.waiting[i] = nil
	}
	b.waiting = b.waiting[:0]
}

// wait is false when end is closed before ok is true. mu is held, but while it sleeps; so it is for ok.
func (b *bell) wait(mu *sync.Mutex, end <-chan struct{}, ok func() bool) bool {
	for i := 0; !ok(); i++ {
		select {
		case <-end:
			return false
		default:
		}
		if i < glances {
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
		} else {
			b.sleep(mu, end)
		}
	}
	return true
}

// sleep returns after the next ring, or once end is closed. mu is held, but while it sleeps.
func (b *bell) sleep(mu *sync.Mutex, end <-chan struct{}) {
	var ch chan struct{}
	if n := len(b.idle); n > 0 {
		ch, b.idle = b.idle[n-1], b.idle[:n-1]
	} else {
		ch = make(chan struct{}, 1)
	}
	b.waiting = append(b.waiting, ch)
	mu.Unlock()
	select {
	case <-ch:
		mu.Lock()
	case <-end:
		mu.Lock()
		if !b.forget(ch) {
			<-ch // it was rung meanwhile
		}
	}
	b.idle = append(b.idle, ch)
}

// forget takes ch from those that ring would wake. It is false if ch was rung.
func (b *bell) forget(ch chan struct{}) bool {
	i := slices.Index(b.waiting, ch)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}
