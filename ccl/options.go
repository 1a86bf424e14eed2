package ccl

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
)

// Options tune a Comm. The zero value holds the defaults. All fields except Device, OnFailure,
// OnCall, Log, Name and Store must be the same on all ranks; otherwise NewComm fails and names those
// that differ.
type Options struct {
	// Backend names the engine that moves data beside the CPU engine, which every Comm has for
	// control, Barrier and host slices. "" takes the compiled-in engine whose device every rank
	// has, if there is one. "cpu" takes none.
	Backend string
	// Staged moves host slices through the device's library as well, by copies in device memory.
	// That is of use where the library knows a network between the hosts that TCP does not reach as
	// fast. Without it the CPU engine moves host slices.
	Staged bool
	// Device is the index of this rank's device. nil takes the rank's local number among the
	// visible devices.
	Device *int
	// Timeout is the longest time that one call may take. 0 means 10 minutes, a negative value no
	// limit. Time for which the process is stopped does not count.
	Timeout time.Duration
	// PeerTimeout is the silence after which a rank counts as lost. 0 means 5 seconds, a negative
	// value never. NewComm refuses one of less than a second.
	PeerTimeout time.Duration
	// Check says how thoroughly mismatched calls are looked for. The default is CheckAsync.
	Check Check
	// RankOrder reduces strictly in rank order, which gives the bits of adding rank by rank. It is
	// slower, and for the CPU engine only. docs/types.md has what it means for 16-bit floats.
	RankOrder bool
	// Order is that of the hosts in rings. With OrderLinks the links between them are measured first.
	Order HostOrder
	// OnFailure is called once, before any call returns the failure. It may Close the Comm, but
	// not make calls on it. A call waits for OnFailure to return, but no longer than its context
	// and Timeout allow.
	OnFailure func(*Error)
	// OnCall is called after every call on host memory, and every Split, Window and MonitoredBarrier,
	// on the goroutine of that call, and after every call on a device, on a goroutine of its own and
	// in order. It is meant for metrics. Nothing waits for a device because of OnCall. The Comm learns
	// that a stream has passed a call from a Wait, from a Synchronize of the stream, or by looking
	// every 10 ms; what is still under way when the Comm is closed is not told. A call that is captured
	// into a graph is not told by itself: each launch of the graph is. Of launches under way at once
	// only the last 16 are told.
	OnCall func(Observation)
	// Log receives what the Comm reports. nil sends warnings and errors to slog.Default(), or what
	// has at least the level that GOCCL_LOG names: only errors with "error" or "quiet", and everything
	// with "debug" or "all".
	Log *slog.Logger
	// Wire says how the CPU engine's data travel between hosts: "plain"; "auth", which finds out
	// if they were changed on the way; or "encrypt", which also hides them. "" takes what
	// GOCCL_WIRE says, and "plain" without it. It is the same on all ranks, and all but "plain" need
	// the job's secret; docs/secret.md has what each costs.
	Wire string
	// Hints tune the library of the backend.
	Hints Hints
	// Name is what errors and reports call the Comm, as SetName sets it. "" means "world" for the
	// Comm of NewComm, and the parent's name with the color for a Comm of Split.
	Name string
	// Spares is how many of the job's ranks wait until one is needed: the last ones. NewComm gives
	// the others, the workers, a Comm of their own, whose Replace gives a spare the place of a rank
	// that is lost. With 0, Join takes what GOCCL_SPARES says, and none without it; a negative value is
	// none. See docs/elastic.md.
	Spares int

	// Store is where processes that start late wait for this job to take them in, by Grow. nil is what
	// GOCCL_HALL names under Join, and none under NewComm. It is not compared. A Comm of Split or Subset
	// has none.
	Store boot.Store
}

// settings are the Options of a Comm, and what its rank knows of the job that no user sets.
type settings struct {
	Options
	asked  *Options // as the job was started with them, for the one that Grow makes; nil in a Comm of Split or Subset
	hostID string   // what the Bootstrap said
	born   int64    // the generation in which the job has grown to this one; 0 for the first
	came   *arrivals
	links  *knownLinks // between hosts of the job; never nil
	older  *olderLinks // in the job that has grown to this one
	// whose pool it is, which nobody outside this package sees: its failure is told where it is dealt
	// with; nil for all other Comms
	pool *reserve
}

// settingsOf are the settings of a Comm that is asked for with o, which may be nil.
func settingsOf(o *Options) (s settings) {
	if o != nil {
		s.Options = *o
	}
	return s
}

// ofPart are the settings of a Comm of that name with some ranks of the job. It cannot grow, and no newcomer
// waits for it.
func (s settings) ofPart(name string) settings {
	s.Name, s.Store, s.asked, s.links = name, nil, nil, s.links.clone()
	return s
}

const (
	defaultTimeout     = 10 * time.Minute
	defaultPeerTimeout = 5 * time.Second
	leastPeerTimeout   = time.Second // a shorter silence is that of a rank which waits for a processor
)

// settled is o with its defaults filled in.
func (o *Options) settled() (Options, error) {
	s := *o
	s.Timeout = cmp.Or(s.Timeout, defaultTimeout)
	s.PeerTimeout = cmp.Or(s.PeerTimeout, defaultPeerTimeout)
	s.Log = cmp.Or(s.Log, defaultLog(environ.Log.Get()))
	if err := checkBackend(s.Backend); err != nil {
		return s, err
	}
	s.Wire = cmp.Or(s.Wire, environ.Wire.Get(), auth.Plain.String())
	if _, err := auth.ParseWire(s.Wire); err != nil {
		return s, fmt.Errorf("Options.Wire is %w", err)
	}
	if err := s.Hints.check(); err != nil {
		return s, fmt.Errorf("Options.Hints: %w", err)
	}
	s.Spares = max(s.Spares, 0)
	switch {
	case s.Check > CheckOff:
		return s, errCheck(s.Check)
	case s.Order > OrderLinks:
		return s, fmt.Errorf("Options.Order is %d; the orders are OrderRanks and OrderLinks", s.Order)
	case s.PeerTimeout > 0 && s.PeerTimeout < leastPeerTimeout:
		return s, fmt.Errorf("Options.PeerTimeout is %v; it is at least %v, 0 for %v, or negative for never", s.PeerTimeout,
			leastPeerTimeout, defaultPeerTimeout)
	}
	return s, nil
}

// patience is how long a rank waits for the others as it closes its Comm.
func (o *Options) patience() time.Duration {
	if o.PeerTimeout < 0 {
		return defaultPeerTimeout
	}
	return o.PeerTimeout
}

func errCheck(k Check) error {
	return fmt.Errorf("Check is %d; the levels are CheckAsync, CheckStrict and CheckOff", k)
}

// agreed lists what must agree on all ranks, as name=value pairs.
func (o *Options) agreed(algorithms string, secret auth.Secret) string {
	built := "" // what is chosen from where nothing is named: programs built with other tags would choose otherwise
	if o.Backend == "" {
		built = strings.Join(Backends(), ",")
	}
	return fmt.Sprintf("version %s;Backend=%q;build tags=%q;Staged=%v;Timeout=%v;PeerTimeout=%v;Check=%v;RankOrder=%v;Order=%v;Wire (GOCCL_WIRE)=%q;Hints=%q;GOCCL_ALGO=%q;Spares (GOCCL_SPARES)=%d;secret (GOCCL_SECRET_FILE)=%s",
		Version, o.Backend, built, o.Staged, o.Timeout, o.PeerTimeout, o.Check, o.RankOrder, o.Order, o.Wire,
		o.Hints.String(), algorithms, o.Spares, hasSecret(secret))
}
