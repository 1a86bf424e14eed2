package main_test

import (
	"fmt"
	"strconv"
	"strings"
)

// This is a parser of nccl-tests' tables, written from the description of their layout
// alone and not from what bench has: fixed columns, two blanks between fields.

// measured is one half of a line.
type measured struct {
	time, algbw, busbw float64
	wrong              string    // a number, or N/A
	iterations         []float64 // i_min i_max i_p99 i_cv%, with -I
}

// tableLine is one line of a table.
type tableLine struct {
	size, count       int
	typ, redop        string
	root              int
	outPlace, inPlace measured
	stamp             string // with -S
}

// table is what a run of nccl-tests prints.
type table struct {
	lines   []tableLine
	devices int
	wrong   string // of the footer
	okay    bool
	busbw   float64
}

var widths = []int{12, 12, 8, 6, 6}

// parse reads standard output; iterations says that it was run with -I 1, stamps with -S 1.
func parse(out string, iterations, stamps bool) (t table, err error) {
	columns := append([]int{}, widths...)
	half := []int{7, 6, 6, 6}
	if iterations {
		half = append(half, 7, 7, 7, 7)
	}
	columns = append(append(columns, half...), half...)
	for _, line := range strings.Split(out, "\n") {
		switch {
		case strings.HasPrefix(line, "#  Rank "):
			t.devices++
		case strings.HasPrefix(line, "# Out of bounds values : "):
			t.wrong, line, _ = strings.Cut(strings.TrimPrefix(line, "# Out of bounds values : "), " ")
			t.okay = line == "OK"
		case strings.HasPrefix(line, "# Avg bus bandwidth    : "):
			t.busbw, err = strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(line, "# Avg bus bandwidth    : ")), 64)
		case line == "" || line[0] == '#':
		default:
			var l tableLine
			if l, err = parseLine(line, columns, len(half), stamps); err == nil {
				t.lines = append(t.lines, l)
			}
		}
		if err != nil {
			return t, fmt.Errorf("%q: %w", line, err)
		}
	}
	return t, nil
}

func parseLine(line string, columns []int, half int, stamps bool) (l tableLine, err error) {
	var fields []string
	rest := line
	for i, width := range columns {
		if i > 0 {
			if !strings.HasPrefix(rest, "  ") {
				return l, fmt.Errorf("no two blanks before field %d", i)
			}
			rest = rest[2:]
		}
		if len(rest) < width {
			return l, fmt.Errorf("the line ends in field %d", i)
		}
		fields, rest = append(fields, strings.TrimLeft(rest[:width], " ")), rest[width:]
	}
	if stamps {
		l.stamp = strings.TrimSpace(rest)
	} else if rest != "" {
		return l, fmt.Errorf("%q after the last field", rest)
	}
	number := func(s string) (x float64) {
		if s == "n/a" {
			return 0
		}
		x, e := strconv.ParseFloat(s, 64)
		if e != nil {
			err = e
		}
		return x
	}
	l.size, l.count, l.root = int(number(fields[0])), int(number(fields[1])), int(number(fields[4]))
	l.typ, l.redop = fields[2], fields[3]
	for i, m := range []*measured{&l.outPlace, &l.inPlace} {
		f := fields[5+i*half:]
		*m = measured{time: number(f[0]), algbw: number(f[1]), busbw: number(f[2]), wrong: f[3]}
		for _, s := range f[4:half] {
			m.iterations = append(m.iterations, number(s))
		}
	}
	return l, err
}
