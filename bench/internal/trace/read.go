package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/plain"
)

// line is one line of a trace file: a Comm as one rank knows it. Package ccl writes them.
type line struct {
	Version int       `json:"goccl_trace"`
	Job     string    `json:"job"`
	Comm    string    `json:"comm"`
	ID      string    `json:"id"`
	Rank    int       `json:"rank"`
	Size    int       `json:"size"`
	World   int       `json:"world"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	Why     string    `json:"why"`
	Code    string    `json:"code"`
	Peer    *int      `json:"peer"`
	Error   string    `json:"error"`
	Theirs  *call     `json:"theirs"`
	Doing   string    `json:"doing"`
	For     *int      `json:"for"`
	Calls   []call    `json:"calls"`
	Graphs  []call    `json:"graphs"`

	Clock time.Duration `json:"clock_ns"` // Time by the clock of the calls; 0 in older files
}

// call is one call of the flight recorder.
type call struct {
	Seq    uint64        `json:"seq"`
	Kind   string        `json:"kind"`
	Type   string        `json:"type"`
	Op     string        `json:"op"`
	Count  uint64        `json:"count"`
	Root   int32         `json:"root"`
	Number int32         `json:"number"`
	State  string        `json:"state"`
	Start  time.Duration `json:"start_ns"`
	End    time.Duration `json:"end_ns"`
	Caller string        `json:"caller"`
}

// shape is what the ranks of a collective must agree on.
func (c *call) shape() string {
	s := c.Kind
	if c.Type != "" {
		s += fmt.Sprintf(" %s x %d", c.Type, c.Count)
	}
	if c.Op != "" {
		s += " " + c.Op
	}
	if c.Root >= 0 {
		s += fmt.Sprintf(" root %d", c.Root)
	}
	if c.Number > 0 {
		s += fmt.Sprintf(" number %d", c.Number)
	}
	return s
}

func (c *call) String() string {
	s := fmt.Sprintf("#%d %s", c.Seq, c.shape())
	if c.Caller != "" {
		s += " at " + c.Caller
	}
	return s
}

// pairwise reports whether only two ranks make such a call.
func (c *call) pairwise() bool { return c.Kind == "Send" || c.Kind == "Recv" || c.Kind == "SendRecv" }

const (
	version  = 1
	mostRead = 1 << 30 // of a file
	maxLine  = 1 << 20
	maxRanks = 1 << 24
	maxCalls = 1 << 10
	maxText  = 4 << 10
	maxTime  = 100 * 365 * 24 * time.Hour
)

// parse reads one line, believing nothing that it says about itself.
func parse(b []byte) (*line, error) {
	var l line
	if err := plain.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("not a line of JSON: %w", err)
	}
	switch {
	case l.Version == 0:
		return nil, errors.New("not a line of a goccl trace")
	case l.Version != version:
		return nil, fmt.Errorf("a trace of version %d; this program reads version %d", l.Version, version)
	case l.Size < 1 || l.Size > maxRanks || l.Rank < 0 || l.Rank >= l.Size || l.World < 0 || l.World >= maxRanks:
		return nil, fmt.Errorf("rank %d of %d, %d of the job: there is no such rank", l.Rank, l.Size, l.World)
	case len(l.Calls)+len(l.Graphs) > maxCalls:
		return nil, fmt.Errorf("%d calls; at most %d are kept", len(l.Calls)+len(l.Graphs), maxCalls)
	case l.Clock < 0 || l.Clock > maxTime || slices.ContainsFunc(slices.Concat(l.Calls, l.Graphs), func(c call) bool {
		return c.Start < 0 || c.Start > maxTime || c.End < 0 || c.End > maxTime
	}):
		return nil, errors.New("a time that no job lasts")
	case l.Peer != nil && (*l.Peer < 0 || *l.Peer >= l.Size), l.For != nil && (*l.For < 0 || *l.For >= l.Size):
		return nil, errors.New("a peer that is not a rank of the Comm")
	}
	for _, s := range []string{l.Job, l.Comm, l.ID, l.Host, l.Why, l.Code, l.Error, l.Doing} {
		if len(s) > maxText {
			return nil, fmt.Errorf("a text of %d bytes", len(s))
		}
	}
	return &l, nil
}

// read reads a file's lines. What cannot be read is told and left out: a process that was killed may have left half a
// line behind.
func read(name string, r io.Reader, complain func(string)) []*line {
	var lines []*line
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan(); n++ {
		if len(strings.TrimSpace(in.Text())) == 0 {
			continue
		}
		l, err := parse(in.Bytes())
		if err != nil {
			complain(fmt.Sprintf("%s:%d: %v", name, n, err))
			continue
		}
		lines = append(lines, l)
	}
	if err := in.Err(); err != nil {
		complain(fmt.Sprintf("%s: %v", name, err))
	}
	return lines
}

// readDir reads all trace files of a directory.
func readDir(dir string, complain func(string)) ([]*line, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s has no trace files (*.jsonl); run the job with GOCCL_TRACE=%[1]s", dir)
	}
	slices.Sort(names)
	var lines []*line
	for _, name := range names {
		f, size, err := files.Open(name, mostRead)
		if err != nil {
			complain(plain.Text(err.Error()))
			continue
		}
		lines = append(lines, read(plain.Text(filepath.Base(name)), io.LimitReader(f, size), complain)...)
		f.Close()
	}
	return lines, nil
}
