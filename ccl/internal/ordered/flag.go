package ordered

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Flag is set and cleared by one goroutine and read by others. Who sets it looks next at what others store before
// they read it, after Heavy: by Dekker's argument one of the two sees what the other has stored.
type Flag struct{ v uint64 }

// Set sets it before anything that follows is read. Every call does: where Heavy makes the rare reader pay, it need
// not wait until all stores before it, of which the slots' lines may have to come from other cores, are done.
func (f *Flag) Set() {
	if fences.Load() {
		Store(&f.v, 1)
		return
	}
	atomic.StoreUint64(&f.v, 1)
}

// Clear clears it after all that was written before.
func (f *Flag) Clear() { Store(&f.v, 0) }

// Load reports whether it is set.
func (f *Flag) Load() bool { return atomic.LoadUint64(&f.v) != 0 }

// fences says that Heavy does something.
var fences atomic.Bool

// Prepare has this process ask the kernel for Heavy, once, without waiting: that can take it milliseconds.
var Prepare = sync.OnceFunc(func() {
	go func() { fences.Store(registerFence()) }()
})

// Heavy returns when all that other goroutines of this process have stored before is there for all, and all that
// this one has stored is there for whatever they load from now on. If Set did not rely on that yet when this looks,
// it will see what was stored before.
func Heavy() {
	if fences.Load() {
		fence()
	}
}

// Put copies src to where others read it.
func Put(to unsafe.Pointer, src []byte) { Copy(to, unsafe.Pointer(unsafe.SliceData(src)), len(src)) }

// Get copies to dst what another has put at from.
func Get(dst []byte, from unsafe.Pointer) {
	Copy(unsafe.Pointer(unsafe.SliceData(dst)), from, len(dst))
}
