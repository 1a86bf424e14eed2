package ccl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/op"
)

// GOCCL_TRACE names a directory into which each process writes, as lines of JSON, the flight
// recorder of its Comms when they fail and when they are closed, and rank 0 where all ranks stood.
// "bench trace dir" reads them.

// traceLine is one line: a Comm as one rank knows it.
type traceLine struct {
	Version int          `json:"goccl_trace"`
	Job     string       `json:"job"`
	Comm    string       `json:"comm"`           // its name
	ID      string       `json:"id"`             // tells the Comms of a job apart
	Rank    int          `json:"rank"`           // of size
	Size    int          `json:"size"`           //
	World   int          `json:"world"`          // its rank in the job
	Host    string       `json:"host"`           //
	PID     int          `json:"pid"`            //
	Time    time.Time    `json:"time"`           //
	Why     string       `json:"why"`            // failure, exit or standing
	Code    string       `json:"code,omitempty"` // of the failure
	Peer    *int         `json:"peer,omitempty"`
	Error   string       `json:"error,omitempty"`
	Theirs  *tracedCall  `json:"theirs,omitempty"` // Peer's call, of a mismatch
	Doing   string       `json:"doing,omitempty"`  // standing: outside, at work or waits
	For     *int         `json:"for,omitempty"`    // standing: the rank waited for
	Calls   []tracedCall `json:"calls"`
	Clock   int64        `json:"clock_ns,omitempty"` // Time by the clock of Calls
	Graphs  []tracedCall `json:"graphs,omitempty"`   // launches of graphs, which have numbers of their own
}

// tracedCall is one call.
type tracedCall struct {
	Seq    uint64        `json:"seq"`
	Kind   string        `json:"kind"`
	Type   string        `json:"type,omitempty"`
	Op     string        `json:"op,omitempty"`
	Count  uint64        `json:"count"`
	Root   int32         `json:"root"`
	Number int32         `json:"number,omitempty"`
	State  string        `json:"state"`
	Start  time.Duration `json:"start_ns"`
	End    time.Duration `json:"end_ns,omitempty"`
	Caller string        `json:"caller,omitempty"`
}

func traced(c *Call) tracedCall {
	t := tracedCall{Seq: c.Seq, Kind: c.Kind.String(), Count: c.Count, Root: c.Root, Number: c.Number,
		State: c.State.String(), Start: c.Start, End: c.End, Caller: c.Caller}
	if c.Type != TypeNone {
		t.Type = c.Type.String()
	}
	if op.Kind(c.Kind).Reduces() {
		t.Op = c.Op.String()
	}
	return t
}

const traceVersion = 1

// traceFile is the file of this process: what a process has one of.
var traceFile struct {
	sync.Mutex
	f      *os.File
	dir    string // that f is in
	failed bool
}

// writeLines adds lines to the file of this process. world is a rank of it.
func writeLines(dir string, log *slog.Logger, world int, lines []traceLine) {
	t := &traceFile
	t.Lock()
	defer t.Unlock()
	if t.failed {
		return
	}
	var err error
	if t.f != nil && t.dir != dir {
		t.f.Close()
		t.f = nil
	}
	if t.f == nil {
		t.dir = dir
		host, _ := os.Hostname()
		if err = os.MkdirAll(dir, 0o700); err == nil {
			t.f, err = createTrace(dir, fmt.Sprintf("rank%d-%s-%d", world, filepath.Base(host), os.Getpid()))
		}
	}
	for _, l := range lines {
		if err == nil {
			err = json.NewEncoder(t.f).Encode(l)
		}
	}
	if err != nil {
		t.failed = true
		log.Warn("ccl: GOCCL_TRACE: this rank stops writing", "error", err)
	}
}

// createTrace makes a file of that name, or of one that begins so. What is there already stays as
// it is: where others may write in dir it could be a link to any file of this user's.
func createTrace(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.CreateTemp(dir, name+"-*.jsonl")
	}
	return f, err
}

// traceDir is where to write, "" for nowhere.
func traceDir() string { return environ.Trace.Get() }

// writeTrace writes what the flight recorder has kept.
func (r reporter) writeTrace(why string, e *Error) {
	c := r.c
	dir := traceDir()
	if dir == "" || c.opt.pool != nil {
		return
	}
	l := r.line(why)
	for call := range c.Trace() {
		if call.Kind == KindGraph { // it has no place in the order of calls, by which bench trace compares ranks
			l.Graphs = append(l.Graphs, traced(&call))
			continue
		}
		l.Calls = append(l.Calls, traced(&call))
	}
	l.Time, l.Clock = time.Now().UTC(), c.eng.Now() // not before the calls have ended that are in it
	if e != nil {
		l.Code, l.Error = e.Code.Error(), e.Error()
		if e.Peer >= 0 {
			l.Peer = &e.Peer
		}
		if e.Theirs != nil {
			theirs := traced(e.Theirs)
			l.Theirs = &theirs
		}
	}
	writeLines(dir, c.opt.Log, l.World, []traceLine{l})
}

func (r reporter) line(why string) traceLine {
	c := r.c
	return traceLine{Version: traceVersion, Job: c.eng.Control().Standing.Job(), Comm: c.Name(),
		ID: fmt.Sprintf("%x", c.eng.ID()), Rank: c.Rank(), Size: c.Size(),
		World: c.eng.World(c.Rank()), Host: c.host, PID: os.Getpid(), Time: time.Now().UTC(), Clock: c.eng.Now(), Why: why,
		Calls: []tracedCall{}}
}

var doing = map[status.Doing]string{status.Outside: "outside", status.AtWork: "at work", status.Waits: "waits"}

// writePicture writes where all ranks stood.
func (r reporter) writePicture(all []status.Status) {
	dir := traceDir()
	if dir == "" {
		return
	}
	lines := make([]traceLine, 0, len(all))
	for i := range all {
		s := &all[i]
		l := r.line("standing")
		l.Comm, l.ID, l.Rank, l.Size, l.World, l.Host = s.Name(), fmt.Sprintf("%x", s.Comm), int(s.Rank), int(s.Size),
			int(s.World), s.Host()
		l.Doing = doing[s.Doing]
		if s.Peer >= 0 {
			peer := int(s.Peer)
			l.For = &peer
		}
		if s.Call.Kind != 0 {
			call := callOf(&s.Call)
			call.Caller = s.Caller()
			l.Calls = append(l.Calls, traced(call))
		}
		lines = append(lines, l)
	}
	writeLines(dir, r.c.opt.Log, r.c.eng.World(r.c.Rank()), lines)
}
