package plane

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// findCircle names a deadlock, once, if this process is the one to do so. One that is found must be found again a
// quarter of a second later: what was told of the ranks may have been of different times.
func (j *Job) findCircle() {
	j.mu.Lock()
	m := j.reporter()
	j.mu.Unlock()
	if m == nil || m.Hooks.OnCircle == nil || !j.Statuses.MayCircle() {
		return
	}
	found := status.Circle(j.Statuses.Of(0))
	if j.watch.circles.confirm(found) {
		m.Hooks.OnCircle(found)
	}
}

// circles are the deadlocks that were found last.
type circles struct {
	named []int32 // the one that was named last
	once  []int32 // one that was found once
}

// confirm reports whether found is to be named: it was found before, and was not named last.
func (k *circles) confirm(found []status.Wait) bool {
	var key []int32
	for _, w := range found {
		key = append(key, w.World, int32(w.Comm), int32(w.Calls), int32(w.Call.Seq))
	}
	switch {
	case len(found) == 0:
		k.once = nil
	case slices.Equal(key, k.named):
	case slices.Equal(key, k.once):
		k.named = key
		return true
	default:
		k.once = key
	}
	return false
}
