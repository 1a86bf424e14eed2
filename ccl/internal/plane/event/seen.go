package event

import "sync"

// keptIDs is how many events a process remembers to have seen. It must be more than are on their way at a time: one that is
// forgotten while a copy of it still comes would go round for ever. Each Comm that closes on several hosts is an event of
// each host.
const keptIDs = 1 << 13

// Seen are the last events that have come. Each reaches a host over several connections.
type Seen struct {
	mu    sync.Mutex // guards what follows; nothing is taken under it
	ids   map[id]bool
	order []id // the oldest first
}

// First reports whether e comes for the first time.
func (k *Seen) First(e *Event) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := e.key()
	if k.ids[key] {
		return false
	}
	if k.ids == nil {
		k.ids = map[id]bool{}
	}
	k.ids[key] = true
	if k.order = append(k.order, key); len(k.order) > keptIDs {
		delete(k.ids, k.order[0])
		k.order = k.order[1:]
	}
	return true
}
