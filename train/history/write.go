package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/goccl/goccl/train/history/events"
)

// stepKey is the name under which an object has its step.
const stepKey = "step"

// write writes a step as text and as JSON. What goes wrong is kept for all ranks to hear.
func (h *History) write(step int, m []Metric, stats []Stat) {
	var errs [3]error
	if h.o.Out != nil {
		b := fmt.Appendf(h.line[:0], "step=%d", step)
		for i, x := range m {
			b = fmt.Appendf(b, " %s=%.6g", x.Name, stats[i].Mean)
		}
		h.line = append(b, '\n')
		_, errs[0] = h.o.Out.Write(h.line)
	}
	if h.o.JSON != nil {
		b := fmt.Appendf(h.line[:0], `{"%s":%d`, stepKey, step)
		for i, x := range m {
			name, _ := json.Marshal(x.Name)
			b = append(append(append(b, ','), name...), `:{"mean":`...)
			b = appendNumber(b, stats[i].Mean)
			b = appendNumber(append(b, `,"min":`...), stats[i].Min)
			b = appendNumber(append(b, `,"max":`...), stats[i].Max)
			b = append(appendNumber(append(b, `,"std":`...), stats[i].Std), '}')
		}
		h.line = append(b, "}\n"...)
		_, errs[1] = h.o.JSON.Write(h.line)
	}
	if h.events != nil {
		errs[2] = h.event(step, m, stats)
	}
	h.fail(step, errors.Join(errs[:]...))
}

// fail keeps why a step could not be written, unless something failed before.
func (h *History) fail(step int, err error) {
	if err != nil && h.failed == nil {
		h.failed = fmt.Errorf("history: step %d could not be written: %w", step, err)
	}
}

// event writes a step for TensorBoard.
func (h *History) event(step int, m []Metric, stats []Stat) error {
	h.scalars = h.scalars[:0]
	for i, x := range m {
		h.scalars = append(h.scalars, events.Scalar{Tag: x.Name, Value: stats[i].Mean})
		if n := h.c.Size(); n > 1 && n <= h.o.MaxRanks {
			h.scalars = append(h.scalars, events.Scalar{Tag: x.Name + "/min", Value: stats[i].Min},
				events.Scalar{Tag: x.Name + "/max", Value: stats[i].Max})
		}
	}
	return h.events.Scalars(time.Now(), step, h.scalars...)
}

// appendNumber writes x such that it reads back equal.
func appendNumber(b []byte, x float64) []byte {
	if !finite(x) { // JSON has no such number
		return strconv.AppendQuote(b, cell(x))
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}

// number is a float64 as appendNumber writes it.
type number float64

// UnmarshalJSON reads a number, or one of three strings.
func (n *number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case `"NaN"`, `"Inf"`, `"-Inf"`:
		x, err := strconv.ParseFloat(s[1:len(s)-1], 64)
		*n = number(x)
		return err
	}
	return json.Unmarshal(b, (*float64)(n))
}

// maxLine is the longest line that Read takes.
const maxLine = 16 << 20

// Read reads the JSON lines of a run, to plot and to compare. What it returns has no ranks: Log refuses.
//
// A file may have been appended to by a run that went on from a checkpoint: where the steps of a
// metric go back, and stay back, what follows replaces the steps from there on. A line that a
// killed run or a full disk has torn is left out, also where the next run has gone on within the
// line; anything else that is no object of Log is an error.
func Read(r io.Reader) (*History, error) {
	h := &History{series: map[string]*series{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var all records
	line := 0
	for in.Scan() {
		line++
		if err := all.line(in.Bytes()); err != nil {
			return nil, fmt.Errorf("history: line %d: %w", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("history: line %d: %w", line+1, err)
	}
	for _, name := range all.names {
		h.replay(name, all.of[name])
	}
	return h, nil
}

// replay records what a file has of one metric, in its order.
func (h *History) replay(name string, list []record) {
	most := math.MinInt // the latest step so far
	for i, x := range list {
		alone := i+1 < len(list) && list[i+1].step > most // it went back for this step only
		if i > 0 && x.step <= most && !alone {
			h.series[name].cut(x.step)
			most = x.step
		}
		h.add(name, x.step, x.stat)
		most = max(most, x.step)
	}
}

// records are what a file has, by metric.
type records struct {
	names []string
	of    map[string][]record
}

type record struct {
	step int
	stat Stat
}

// begin is how Log begins an object. Inside of one it cannot stand: quotes in a name are escaped.
const begin = `{"` + stepKey + `":`

// line takes one line, which has one object, or more than one where those before the last are torn
// or only their newline is missing.
func (all *records) line(b []byte) error {
	for b = bytes.TrimSpace(b); len(b) > 0; {
		rest := b[1:]
		at := bytes.Index(rest, []byte(begin))
		object := b
		if at >= 0 {
			object = b[:1+at]
		}
		torn, err := all.object(object)
		if err != nil && !(torn && b[0] == '{') {
			return err
		}
		b = bytes.TrimSpace(b[len(object):])
	}
	return nil
}

// object takes one object. Its keys keep their order. torn says that the error is its early end.
func (all *records) object(b []byte) (torn bool, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	var names []string
	var stats []Stat
	step, found := 0, false
	early := func(err error) (bool, error) {
		return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF), err
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false, errors.New("not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return early(err)
		}
		name, _ := key.(string)
		if name == stepKey {
			if err := d.Decode(&step); err != nil {
				return early(fmt.Errorf("%q: %w", name, err))
			}
			found = true
			continue
		}
		var s *struct{ Mean, Min, Max, Std number }
		if err := d.Decode(&s); err != nil {
			return early(fmt.Errorf("%q: %w", name, err))
		}
		if s == nil || name == "" {
			return false, fmt.Errorf("%q has no values", name)
		}
		names = append(names, name)
		stats = append(stats, Stat{float64(s.Mean), float64(s.Min), float64(s.Max), float64(s.Std)})
	}
	if _, err := d.Token(); err != nil {
		return early(err)
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return false, fmt.Errorf("%q behind the object", rest[:min(len(rest), 20)])
	}
	if !found {
		return false, errors.New("no step")
	}
	for i, name := range names {
		if all.of == nil {
			all.of = map[string][]record{}
		}
		if all.of[name] == nil {
			all.names = append(all.names, name)
		}
		all.of[name] = append(all.of[name], record{step, stats[i]})
	}
	return false, nil
}
