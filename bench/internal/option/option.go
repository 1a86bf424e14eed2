// Package option reads bench's command line. It refuses what makes no sense with
// one line that says what to write instead, before any rank is started.
package option

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Options are bench's flags.
type Options struct {
	Collectives []string
	Types       []ccl.Type
	Ops         []ccl.Op
	Root        int // AllRoots for each in turn

	Min, Max     int // bytes
	Step, Factor int // one of them is 0

	Iters, Warmup, Agg int
	Check              int // iterations that are checked
	Average            Average
	Timeout            time.Duration // of one line; 0 for none

	NP, Hosts, Threads int
	NPGiven            bool
	ItersGiven         bool

	JSON    string
	Verbose bool
	Help    bool
}

// Timed is how many iterations a line of that many bytes is timed over. Without -n
// small sizes get more, up to 25 times as many: 20 calls of a microsecond are over
// before two processes have met.
func (o *Options) Timed(bytes int) int {
	const whole, most = 256 << 10, 25
	if o.ItersGiven {
		return o.Iters
	}
	return o.Iters * min(max(whole/max(bytes, 1), 1), most)
}

// AllRoots, as a root, stands for each rank in turn.
const AllRoots = -1

// Average says which of the ranks' times is reported.
type Average int

// The values of -a.
const (
	OfRank0 Average = iota
	Mean
	Least
	Most
)

// The most processes and ranks that are started on one machine, against a slip of
// the finger.
const (
	MaxProcesses = 1024
	maxRanks     = 4096
)

// Default is what an empty command line means on this machine.
func Default() Options {
	return Options{
		Collectives: []string{"allreduce"},
		Types:       []ccl.Type{ccl.TypeFloat32},
		Ops:         []ccl.Op{ccl.Sum},
		Min:         8, Max: 64 << 20, Factor: 2,
		Iters: 20, Warmup: 1, Agg: 1, Check: 1, Average: Mean,
		NP: min(max(runtime.NumCPU(), 2), 8), Hosts: 1, Threads: 1,
	}
}

// Parse reads the arguments after the program's name.
func Parse(args []string) (Options, error) {
	o := Default()
	given := map[string]bool{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if !strings.HasPrefix(arg, "-") || name == "" {
			return o, stray(arg)
		}
		f := lookup(name)
		if f == nil && !glued && len(name) > 1 && name[1] >= '0' && name[1] <= '9' {
			f, value, glued = lookup(name[:1]), name[1:], true // getopt's -n20
		}
		if f == nil {
			return o, unknown("-"+name, "flag", near("-", name, flagNames()), "-h lists them")
		}
		if f.value == "" {
			if glued && value != "true" && value != "false" {
				return o, fmt.Errorf("%s: -%s takes no value", arg, f.name)
			}
			if value == "false" {
				continue
			}
		} else if !glued {
			if len(args) == 0 {
				return o, fmt.Errorf("-%s: what? It takes a value: %s", f.name, f.help)
			}
			value, args = args[0], args[1:]
		}
		if err := f.set(&o, value); err != nil {
			return o, fmt.Errorf("-%s %s: %w", f.name, value, err)
		}
		given[f.name] = true
	}
	return o.settle(given)
}

// settle fills in what was not given and refuses what does not fit together.
func (o Options) settle(given map[string]bool) (Options, error) {
	if o.Help {
		return o, nil
	}
	o.NPGiven, o.ItersGiven = given["np"], given["n"]
	if given["t"] && !given["np"] {
		o.NP = 1 // as in nccl-tests: threads of one process
	}
	switch {
	case given["i"] && given["f"]:
		return o, errors.New("-i and -f: sizes grow by steps or by a factor, not both; leave one out")
	case given["i"]:
		o.Factor = 0
	}
	switch {
	case o.Min > o.Max && !given["e"]:
		o.Max = o.Min
	case o.Min > o.Max && !given["b"]:
		o.Min = o.Max
	case o.Min > o.Max:
		return o, fmt.Errorf("-b %s -e %s: the smallest size is larger than the largest; swap them?", FormatSize(o.Min), FormatSize(o.Max))
	}
	if o.NP*o.Threads > maxRanks {
		return o, fmt.Errorf("-np %d -t %d: that makes %d ranks; at most %d are started on one machine", o.NP, o.Threads, o.NP*o.Threads, maxRanks)
	}
	return o, nil
}

// Fits refuses what does not fit a job of so many ranks.
func (o Options) Fits(ranks int) error {
	if o.Root >= ranks {
		return fmt.Errorf("-r %d: there are %d ranks, so the root is 0 to %d, or all", o.Root, ranks, ranks-1)
	}
	return nil
}

// FitsHosts refuses more hosts than there are units to spread over them.
func (o Options) FitsHosts(units int, what string) error {
	if o.Hosts > units {
		return fmt.Errorf("-hosts %d: there are only %d %s to spread over them; give -np %d or more", o.Hosts, units, what, o.Hosts)
	}
	return nil
}

// Sizes are the sizes to measure, in bytes.
func (o Options) Sizes() []int {
	var s []int
	for n := o.Min; n <= o.Max; {
		s = append(s, n)
		next := n + o.Step
		if o.Factor > 0 {
			next = n * o.Factor
			if n > o.Max/o.Factor {
				break
			}
		}
		if next <= n {
			break
		}
		n = next
	}
	return s
}

func stray(arg string) error {
	if n := Nearest(squeeze(arg), collectiveNames()); n != "" {
		return fmt.Errorf("%s: an argument without a flag; did you mean -op %s?", arg, n)
	}
	return fmt.Errorf("%s: an argument without a flag (-h lists the flags)", arg)
}

// unknown says that there is no such thing, and what may have been meant.
func unknown(word, what, nearest, lists string) error {
	if nearest != "" {
		return fmt.Errorf("%s: no such %s; did you mean %s? (%s)", word, what, nearest, lists)
	}
	return fmt.Errorf("%s: no such %s (%s)", word, what, lists)
}

func near(prefix, word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return prefix + n
	}
	return ""
}

// whole reads an integer that is at least least.
func whole(s string, least int) (int, error) {
	n, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("the number is too large")
	case err != nil:
		return 0, errors.New("not a whole number")
	case n < least:
		return 0, fmt.Errorf("it must be at least %d", least)
	}
	return n, nil
}

func squeeze(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
