package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
)

// flag is one flag: the table drives the parser, the help and the suggestions.
type flag struct {
	name  string
	value string // what it takes, for the help; "" if nothing
	help  string
	group string
	set   func(o *Options, s string) error
}

const (
	groupWhat = "What to measure"
	groupHow  = "How"
	groupJob  = "Ranks (when no launcher started any)"
	groupOut  = "Output"
)

func flags() []flag {
	return []flag{
		{"op", "OP", "collective, a comma list of them, or all (allreduce)", groupWhat, setCollectives},
		{"b", "SIZE", "smallest size in bytes; K, M, G are powers of 1024 (8)", groupWhat, size(func(o *Options) *int { return &o.Min }, 0)},
		{"e", "SIZE", "largest size (64M)", groupWhat, size(func(o *Options) *int { return &o.Max }, 0)},
		{"f", "N", "multiply the size by N, line by line (2)", groupWhat, number(func(o *Options) *int { return &o.Factor }, 2)},
		{"i", "SIZE", "or add SIZE, line by line", groupWhat, size(func(o *Options) *int { return &o.Step }, 1)},
		{"d", "TYPE", "element type, a list, or all: " + strings.Join(typeNames(), " ") + " (float)", groupWhat, setTypes},
		{"o", "REDOP", "operator, a list, or all: " + strings.Join(opNames(), " ") + " (sum)", groupWhat, setOps},
		{"r", "ROOT", "root rank, or all (0)", groupWhat, setRoot},
		{"n", "N", "timed iterations (20; below 256K more, up to 500)", groupHow, number(func(o *Options) *int { return &o.Iters }, 1)},
		{"w", "N", "warm-up iterations before them (1)", groupHow, number(func(o *Options) *int { return &o.Warmup }, 0)},
		{"m", "N", "calls per iteration, issued as one group (1)", groupHow, number(func(o *Options) *int { return &o.Agg }, 1)},
		{"c", "N", "iterations whose data are checked; 0 for none (1)", groupHow, number(func(o *Options) *int { return &o.Check }, 0)},
		{"a", "N", "time of 0: rank 0, 1: ranks' average, 2: fastest, 3: slowest (1)", groupHow, setAverage},
		{"T", "SECONDS", "give up when one line takes longer (0: never)", groupHow, setTimeout},
		{"np", "N", "processes to start here (the cores, at least 2, at most 8)", groupJob, setNP},
		{"t", "N", "ranks per process, as goroutines (1); alone it means -np 1", groupJob, number(func(o *Options) *int { return &o.Threads }, 1)},
		{"hosts", "N", "let them act as N hosts, with TCP between (1)", groupJob, number(func(o *Options) *int { return &o.Hosts }, 1)},
		{"v", "", "end each line with the algorithm that was chosen", groupOut, func(o *Options, _ string) error { o.Verbose = true; return nil }},
		{"J", "FILE", "write the results as JSON, too", groupOut, setJSON},
		{"h", "", "this text", groupOut, func(o *Options, _ string) error { o.Help = true; return nil }},
		{"help", "", "", "", func(o *Options, _ string) error { o.Help = true; return nil }},
	}
}

func lookup(name string) *flag {
	fs := flags()
	if i := slices.IndexFunc(fs, func(f flag) bool { return f.name == name }); i >= 0 {
		return &fs[i]
	}
	return nil
}

func flagNames() []string {
	var names []string
	for _, f := range flags() {
		names = append(names, f.name)
	}
	return names
}

func number(field func(*Options) *int, least int) func(*Options, string) error {
	return func(o *Options, s string) (err error) {
		*field(o), err = whole(s, least)
		return err
	}
}

func size(field func(*Options) *int, least int) func(*Options, string) error {
	return func(o *Options, s string) error {
		n, err := ParseSize(s)
		if err == nil && n < least {
			err = fmt.Errorf("it must be at least %d", least)
		}
		*field(o) = n
		return err
	}
}

func setNP(o *Options, s string) (err error) {
	o.NP, err = whole(s, 1)
	if err == nil && o.NP > MaxProcesses {
		err = fmt.Errorf("at most %d processes are started on one machine; for more ranks use -t, or a launcher over several", MaxProcesses)
	}
	return err
}

func setAverage(o *Options, s string) error {
	n, err := whole(s, 0)
	if err == nil && n > int(Most) {
		err = errors.New("it is 0 (rank 0), 1 (average), 2 (fastest) or 3 (slowest)")
	}
	o.Average = Average(n)
	return err
}

func setTimeout(o *Options, s string) error {
	n, err := whole(s, 0)
	if err == nil && n > 1<<30 {
		err = errors.New("that is more than 30 years")
	}
	o.Timeout = time.Duration(n) * time.Second
	return err
}

func setRoot(o *Options, s string) (err error) {
	if s == "all" {
		o.Root = AllRoots
		return nil
	}
	if o.Root, err = whole(s, 0); err != nil {
		err = errors.New("a root is a rank, from 0 on, or all")
	}
	return err
}

func setJSON(o *Options, s string) error {
	if s == "" {
		return errors.New("give the name of a file")
	}
	o.JSON = s
	return nil
}

func setCollectives(o *Options, s string) (err error) {
	o.Collectives, err = list(s, "operation", collectiveNames(), collectiveNames(), squeeze)
	return err
}

func setTypes(o *Options, s string) (err error) {
	o.Types, err = list(s, "type", typeNames(), types(), func(w string) string {
		w = strings.ToLower(w)
		if n, ok := goTypes[w]; ok {
			return n
		}
		return w
	})
	return err
}

func setOps(o *Options, s string) (err error) {
	o.Ops, err = list(s, "operator", opNames(), ops(), strings.ToLower)
	return err
}

// list reads a comma list of names, or all, as the values that belong to them.
func list[T comparable](s, what string, names []string, values []T, plain func(string) string) ([]T, error) {
	if s == "all" {
		return values, nil
	}
	var found []T
	for _, word := range strings.Split(s, ",") {
		i := slices.Index(names, plain(word))
		if i < 0 {
			err := fmt.Errorf("no such %s", what)
			if n := Nearest(plain(word), names); n != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, n)
			}
			if word != s {
				err = fmt.Errorf("%q: %w", word, err)
			}
			return nil, fmt.Errorf("%w (-h lists them)", err)
		}
		if !slices.Contains(found, values[i]) {
			found = append(found, values[i])
		}
	}
	return found, nil
}

func collectiveNames() []string { return coll.Names() }

func types() (ts []ccl.Type) {
	for t := ccl.TypeInt8; t <= ccl.TypeFloat8E5M2; t++ {
		ts = append(ts, t)
	}
	return ts
}

func typeNames() []string { return namesOf(types()) }

func ops() []ccl.Op { return []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg} }

func opNames() []string { return namesOf(ops()) }

func namesOf[T fmt.Stringer](s []T) (names []string) {
	for _, v := range s {
		names = append(names, v.String())
	}
	return names
}

// goTypes are Go's names, and others in use, of types that nccl-tests names as C does.
var goTypes = map[string]string{
	"float32": "float", "float64": "double", "float16": "half", "fp16": "half", "bf16": "bfloat16",
	"fp32": "float", "fp64": "double", "float8e4m3": "f8e4m3", "float8e5m2": "f8e5m2",
}
