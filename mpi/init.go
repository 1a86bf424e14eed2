package mpi

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Level says from which threads MPI may be called.
type Level int

// The thread levels.
const (
	Single     Level = iota // the process has one thread
	Funneled                // only one thread calls MPI
	Serialized              // any thread, one at a time
	Multiple                // any thread at any time
)

// String is MPI's name of the level.
func (l Level) String() string {
	return [...]string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
		"MPI_THREAD_MULTIPLE"}[min(max(l, Single), Multiple)]
}

// phases of the process: MPI is initialised and finalised once.
const (
	before int32 = iota
	running
	after
)

// process is what there is one of: the library, and how far MPI is.
var process struct {
	phase   atomic.Int32
	mu      sync.Mutex // guards what follows
	users   int        // of Use
	ours    bool       // Use initialised MPI
	foreign bool       // other code did, before Init: it finalises MPI as well
	left    bool       // a user of Use had to leave calls behind

	loaded     bool
	level      Level
	large      bool   // counts beyond 2^31-1 in one call
	maxTag     int    // the library's greatest tag
	version    string // short
	versionAll string
	path       string

	yielded atomic.Int64 // when a goroutine that makes blocking calls last gave way, in nanoseconds since loaded
}

// A goroutine that has run for 10 ms without giving way is to be preempted. One that is inside C
// cannot be: Go's monitor takes its processor instead, and has then been busy, so it wakes every 20
// microseconds for some time. It does that on the core that MPI spins on, if the launcher has bound
// the process to one: the calls of a loop took up to a quarter longer. So one that makes calls of
// some length gives way in time by itself.
const (
	yieldAfter = 7 * time.Millisecond
	yieldFrom  = 1 << 10 // elements: what takes less than a microsecond is not burdened with reading the clock
)

// loaded is a little before the program began: the first goroutine that asks gives way.
var loaded = time.Now().Add(-yieldAfter)

func yieldNow(now time.Time) bool {
	t := int64(now.Sub(loaded))
	if t-process.yielded.Load() < int64(yieldAfter) {
		return false
	}
	process.yielded.Store(t)
	runtime.Gosched()
	return true
}

// wants is the level that Init asks for; a test asks for less.
var wants = Multiple

// Init opens the MPI library of the launcher that started this process and initialises it, with
// MPI_THREAD_MULTIPLE where the library has it. It is called once, before any other call, on all ranks.
// Where other code of the process has initialised MPI already, that code finalises it as well, and World
// and Self are duplicates, so that those of MPI keep their error handlers. Its error says which libraries
// were tried, or why library and launcher do not match.
func Init() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	return initialise()
}

func initialise() error {
	switch process.phase.Load() {
	case running:
		return failed("Init", ErrState, "MPI is initialised already")
	case after:
		return failed("Init", ErrState, "MPI was finalised, and cannot be initialised again")
	}
	l, err := loadOnce()
	if err != nil {
		return err
	}
	if err := begin(wants); err != nil {
		return err
	}
	if err := world.attach(l); err != nil {
		if !process.foreign {
			process.phase.Store(after)
		}
		return errors.Join(err, end())
	}
	process.phase.Store(running)
	return nil
}

// Load opens the library that Init would initialise, and no more; Version and LibraryPath then say
// which. Init does it by itself.
func Load() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if Finalized() {
		return failed("Load", ErrState, "MPI was finalised")
	}
	_, err := loadOnce()
	return err
}

func loadOnce() (launch, error) {
	l, err := launcherOf(os.Getenv)
	if err != nil || process.loaded {
		return l, err
	}
	err = load(l)
	process.loaded = err == nil
	return l, err
}

// attach learns who this process is, and checks it.
func (c *Comm) attach(l launch) error {
	if process.level < Serialized {
		return failed("Init", ErrThread, "%s (%s) offers only %v, but goroutines need MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
			process.version, process.path, process.level)
	}
	for which, p := range []*Comm{c, &self} {
		p.handle = predefined(which)
		if err := p.identify(); err != nil {
			return err
		}
	}
	return l.agrees(c.rank, c.size, process.version, process.path)
}

// Finalize ends MPI, unless other code of the process initialised it. It is collective over World, and no
// call of this package may follow.
func Finalize() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	return finalise()
}

func finalise() error {
	switch process.phase.Load() {
	case before:
		return failed("Finalize", ErrState, "MPI is not initialised: call mpi.Init first")
	case after:
		return failed("Finalize", ErrState, "MPI was finalised already")
	}
	if n := Abandoned(); n > 0 {
		return failed("Finalize", ErrAbandoned, "%d calls were abandoned, and MPI would wait for them; use Abort", n)
	}
	if n := openFiles.Load(); n > 0 {
		return failed("Finalize", ErrState, "%d files are open: close them first", n)
	}
	process.phase.Store(after)
	return end()
}

// Use initialises MPI unless that has been done, for parts of a program that share it. The last
// to call its done finalises MPI, if it was Use that initialised it. A part that had to leave
// calls behind, since a peer is gone, says so to done: MPI_Finalize would wait for the peer.
func Use() (done func(left bool) error, err error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if !Initialized() {
		if err := initialise(); err != nil {
			return nil, err
		}
		process.ours = !process.foreign
	}
	process.users++
	var once sync.Once
	return func(left bool) (err error) {
		once.Do(func() {
			process.mu.Lock()
			defer process.mu.Unlock()
			process.users--
			process.left = process.left || left
			if process.users == 0 && process.ours && !process.left && process.phase.Load() == running {
				err = finalise()
			}
		})
		return err
	}, nil
}

// Initialized reports whether MPI can be called: Init has succeeded, and Finalize was not called.
func Initialized() bool { return process.phase.Load() == running }

// Finalized reports whether Finalize was called.
func Finalized() bool { return process.phase.Load() == after }

// ThreadLevel is what the library grants.
func ThreadLevel() Level { return process.level }

// LibraryVersion is what the library says about itself; "" before Load.
func LibraryVersion() string { return process.versionAll }

// Version is the library and its version in short, such as "Open MPI 4.1.4"; "" before Load.
func Version() string { return process.version }

// LibraryPath is the file that the library came from; "" before Load.
func LibraryPath() string { return process.path }

// ProcessorName is what the library calls the machine that this process runs on.
func ProcessorName() (string, error) {
	if !Initialized() {
		return "", notRunning("ProcessorName")
	}
	enter()
	defer leave()
	return processorName()
}

// Wtime is MPI's clock in seconds; 0 while MPI is not initialised.
func Wtime() float64 {
	if !Initialized() {
		return 0
	}
	return wtime()
}

func notRunning(op string) error {
	if Finalized() {
		return failed(op, ErrState, "MPI was finalised")
	}
	return failed(op, ErrState, "MPI is not initialised: call mpi.Init first")
}
