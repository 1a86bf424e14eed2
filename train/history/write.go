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
)

// stepKey is the name under which an object has its step.
const stepKey = "step"

// write writes a step as text and as JSON. What goes wrong is kept for all ranks to hear.
func (h *History) write(step int, m []Metric, stats []Stat) {
	var errs [2]error
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
	if err := errors.Join(errs[:]...); err != nil && h.failed == nil {
		h.failed = fmt.Errorf("history: step %d could not be written: %w", step, err)
	}
}

// appendNumber writes x such that it reads back equal.
func appendNumber(b []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(b, `"Inf"`...)
	case math.IsInf(x, -1):
		return append(b, `"-Inf"`...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}

// number is a float64 as appendNumber writes it.
type number float64

// UnmarshalJSON reads a number, or one of three strings.
func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Inf"`:
		*n = number(math.Inf(1))
	case `"-Inf"`:
		*n = number(math.Inf(-1))
	default:
		return json.Unmarshal(b, (*float64)(n))
	}
	return nil
}

// maxLine is the longest line that Read takes.
const maxLine = 16 << 20

// Read reads the JSON lines of a run, to plot and to compare. What it returns has no ranks: Log refuses. A last line
// without an end is left out, as a killed run leaves it.
func Read(r io.Reader) (*History, error) {
	h := &History{series: map[string]*series{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	in.Split(wholeLines)
	line := 0
	for in.Scan() {
		line++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		if err := h.readLine(in.Bytes()); err != nil {
			return nil, fmt.Errorf("history: line %d: %w", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("history: line %d: %w", line+1, err)
	}
	return h, nil
}

// wholeLines is bufio.ScanLines, but for a last line without its end.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// readLine records one object. Its keys keep their order.
func (h *History) readLine(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not an object")
	}
	var names []string
	var stats []Stat
	step, found := 0, false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if name == stepKey {
			if err := d.Decode(&step); err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			found = true
			continue
		}
		var s *struct{ Mean, Min, Max, Std number }
		if err := d.Decode(&s); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if s == nil || name == "" {
			return fmt.Errorf("%q has no values", name)
		}
		names = append(names, name)
		stats = append(stats, Stat{float64(s.Mean), float64(s.Min), float64(s.Max), float64(s.Std)})
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if !found {
		return errors.New("no step")
	}
	for i, name := range names {
		h.add(name, step, stats[i])
	}
	return nil
}
