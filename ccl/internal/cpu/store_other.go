//go:build !amd64 || noasm || race

package cpu

import "sync/atomic"

// storeRelease stores v after all stores before it.
func storeRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// postRelease is storeRelease; next will be written soon.
func postRelease(p *uint64, v uint64, next *uint64) { storeRelease(p, v) }
