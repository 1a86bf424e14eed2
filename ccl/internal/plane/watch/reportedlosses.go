package watch

import "sync/atomic"

// ReportedLosses are the last ranks whose loss a process of the host has logged, so that one
// process logs it. Each is 1 + the rank of the world, 0 for none. The upper half is 1 + the rank
// whose process is to log it, until it has: if that process is lost meanwhile, another logs the
// loss, at worst once more.
type ReportedLosses [8]atomic.Uint64

// Claim reports whether process me is to tell of rank w of the world, and, where it is not, whether
// another has told. isLost reports whether a process is lost.
func (m *ReportedLosses) Claim(w, me int, isLost func(int) bool) (tells, told bool) {
	mine := (uint64(me)+1)<<32 | (uint64(w) + 1)
	for i := range m {
		for {
			v := m[i].Load()
			teller := int(v>>32) - 1
			switch {
			case v != 0 && uint32(v) != uint32(w)+1: // of another rank
			case v != 0 && teller < 0:
				return false, true
			case v != 0 && !isLost(teller):
				return false, false
			case m[i].CompareAndSwap(v, mine):
				return true, false
			default: // another process was faster
				continue
			}
			break
		}
	}
	m[w%len(m)].Store(mine) // many are lost: one of them may be told of again
	return true, false
}

// Tell notes that process me has told of rank w.
func (m *ReportedLosses) Tell(w, me int) {
	for i := range m {
		m[i].CompareAndSwap((uint64(me)+1)<<32|(uint64(w)+1), uint64(w)+1)
	}
}
