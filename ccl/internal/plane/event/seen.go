package event

import (
	"slices"
	"sync"
)

// Seen says which events have come before. Each reaches a host over several connections. A process numbers its events, so
// that however many have come, a few runs of numbers say which.
type Seen struct {
	mu   sync.Mutex // guards what follows; nothing is taken under it
	runs map[source][]run
}

// source is the process that events come from, and a stage, which an event passes once.
type source struct {
	origin int32
	stage  Stage
}

// run is the events of those numbers.
type run struct{ first, last uint32 }

// runsMost is how many runs are kept of a source, the last ones. Events that are still to come count as seen where so
// many later ones, with gaps between them, have overtaken them.
const runsMost = 64

// First reports whether e comes for the first time.
func (k *Seen) First(e *Event) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs = map[source][]run{}
	}
	from, n := source{e.Origin, e.Stage}, e.Number
	runs := k.runs[from]
	i := len(runs)
	for i > 0 && runs[i-1].first > n {
		i--
	}
	if i > 0 && n <= runs[i-1].last {
		return false
	}
	runs = slices.Insert(runs, i, run{n, n})
	runs = joined(joined(runs, i), i-1)
	if len(runs) > runsMost {
		runs[1].first = runs[0].first
		runs = runs[1:]
	}
	k.runs[from] = runs
	return true
}

// joined makes one run of the i-th and the next, if there are two between which no number lies.
func joined(runs []run, i int) []run {
	if i < 0 || i+1 >= len(runs) || runs[i].last+1 != runs[i+1].first {
		return runs
	}
	runs[i].last = runs[i+1].last
	return slices.Delete(runs, i+1, i+2)
}
