package ccltest

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Option says what kind of job Run makes. The default is goroutines on one host.
type Option func(*world)

// Hosts spreads the ranks over k hosts in blocks: the first ranks on host 0, the last on host k-1.
// The hosts are connected by TCP.
func Hosts(k int) Option {
	return func(w *world) {
		w.hosts = k
		w.hostOf = func(rank int) int { return rank * k / w.n }
	}
}

// RoundRobin spreads the ranks over k hosts in turn: rank r is on host r mod k.
func RoundRobin(k int) Option {
	return func(w *world) {
		w.hosts = k
		w.hostOf = func(rank int) int { return rank % k }
	}
}

// Processes spreads the ranks over p processes, in blocks. Those on one host share
// memory.
func Processes(p int) Option { return func(w *world) { w.processes = &p } }

// Spares adds k ranks to the n of Run, which wait as Options.Spares says. The function runs on the
// n workers, and on a spare once it takes the place of a rank; one that is not needed has passed. Hosts,
// RoundRobin and Processes place spares as the last ranks, and faults name them so.
func Spares(k int) Option { return func(w *world) { w.spares = k } }

// With sets the Options of the Comm. A PeerTimeout of 0 means the deadline of Run, since a rank on
// a busy machine is not lost.
func With(o ccl.Options) Option { return func(w *world) { w.options = o } }

// Deadline sets how long the ranks may take; the default is 60 s. After that Run prints the stacks
// of all goroutines and fails.
func Deadline(d time.Duration) Option { return func(w *world) { w.deadline = d } }

// defaultDeadline is far beyond what a collective takes on a busy machine.
const defaultDeadline = 60 * time.Second

// world is one call of Run.
type world struct {
	n         int // ranks, spares included
	spares    int
	f         func(testing.TB, *ccl.Comm)
	hosts     int
	hostOf    func(rank int) int // nil: all on this one
	processes *int               // nil: this one
	options   ccl.Options
	deadline  time.Duration

	virtual      bool
	sim          *simulated // nil: the kernel's network
	disturbances []disturbance
}

func newWorld(n int, f func(testing.TB, *ccl.Comm), opts []Option) (*world, error) {
	w := &world{n: n, f: f, deadline: defaultDeadline}
	for _, o := range opts {
		o(w)
	}
	switch {
	case n < 1:
		return nil, fmt.Errorf("%d ranks; a job has at least one", n)
	case w.spares < 0:
		return nil, fmt.Errorf("%d spares; there are none, or some", w.spares)
	}
	if w.spares > 0 {
		n += w.spares
		w.n, w.options.Spares = n, w.spares
	}
	switch {
	case w.hostOf != nil && (w.hosts < 1 || w.hosts > n):
		return nil, fmt.Errorf("%d hosts for %d ranks; each host needs one rank at least", w.hosts, n)
	case w.processes != nil && (*w.processes < 1 || *w.processes > n):
		return nil, fmt.Errorf("%d processes for %d ranks; each process needs one rank at least", *w.processes, n)
	case w.deadline <= 0:
		return nil, fmt.Errorf("a deadline of %v; it must be more than 0", w.deadline)
	}
	// a second is the least that NewComm takes
	w.options.PeerTimeout = cmp.Or(w.options.PeerTimeout, max(w.deadline, time.Second))
	return w, nil
}

// hostID is the HostID of a rank: "" where nobody asked for hosts.
func (w *world) hostID(rank int) string {
	if w.hostOf == nil {
		return ""
	}
	return fmt.Sprintf("host-%d", w.hostOf(rank))
}

// process is the place among the processes of a rank.
func (w *world) process(rank int) int { return rank * *w.processes / w.n }
