//go:build !amd64 || noasm || race

// Package ordered: see stores_amd64.go. Here the stores are atomic ones.
package ordered

import (
	"sync/atomic"
	"unsafe"
)

// Store stores v after all stores before it.
func Store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Post is Store; next will be written soon.
func Post(p *uint64, v uint64, next *uint64) { Store(p, v) }

// Claim does nothing.
func Claim(p unsafe.Pointer, n int) {}

// Fetch does nothing.
func Fetch(p unsafe.Pointer, n int) {}

// Loaded keeps what was loaded before it, by whatever loads, before the atomic loads that follow:
// an atomic addition publishes, and so ends them first.
func Loaded() {
	var x uint64
	atomic.AddUint64(&x, 1)
}

// Copy copies n bytes. dst and src must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
