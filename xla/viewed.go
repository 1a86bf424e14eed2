package xla

import (
	"sync"
	"unsafe"
)

// viewed is the memory that views are of. A program may read it after its view was freed, and until
// it is done: then the plugin sets the view's mark, on a thread of its own, and counts it.
var viewed = views{all: map[unsafe.Pointer]any{}}

type views struct {
	mu   sync.Mutex
	all  map[unsafe.Pointer]any // by mark, what must not go
	seen int64                  // marks that were set when they were last looked at
}

// add keeps what the view with this mark is of.
func (v *views) add(mark unsafe.Pointer, keep any) {
	v.mu.Lock()
	v.all[mark] = keep
	v.mu.Unlock()
	v.sweep()
}

// sweep lets go of what nothing reads any more.
func (v *views) sweep() {
	v.mu.Lock()
	defer v.mu.Unlock()
	set := marksSet()
	if set == v.seen {
		return
	}
	v.seen = set
	for mark := range v.all {
		if freeMark(mark) {
			delete(v.all, mark)
		}
	}
}
