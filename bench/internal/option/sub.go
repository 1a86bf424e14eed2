package option

import (
	"errors"
	goflag "flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/prose"
)

// The exit statuses of bench and its sub-commands.
const (
	Good     = 0
	Failed   = 1
	BadUsage = 2
	Missed   = 3 // a limit: -min-busbw, -max-p99, or -threshold of ab and compare
	Unclear  = 4 // -strict of ab and compare: the runs cannot tell
)

// Sub is the command line of a sub-command. Its flags are those of the FlagSet.
type Sub struct {
	*goflag.FlagSet
	Operands []string // arguments without a flag, in their order among the flags
	After    []string // what follows "--"

	// Stray, if there is one, says what is wrong with arguments that begin with an operand.
	Stray func(rest []string) error

	about, end     string
	stdout, stderr io.Writer
	values         map[string]string // what flags take, where their help does not have it in backquotes
}

// NewSub makes the command line of "bench name". Its help is about, the flags, and end.
func NewSub(name, about, end string, stdout, stderr io.Writer) *Sub {
	return &Sub{FlagSet: goflag.NewFlagSet(name, goflag.ContinueOnError), about: about, end: end, stdout: stdout, stderr: stderr,
		values: map[string]string{}}
}

// Parse reads args: flags and operands in any order, up to "--". It is false if the command is over with that: help was
// asked for, or something makes no sense, and Parse has said what; then status is the exit status.
func (s *Sub) Parse(args []string) (goOn bool, status int) {
	err := s.parse(args)
	switch {
	case errors.Is(err, goflag.ErrHelp):
		fmt.Fprintf(s.stdout, "%s\n\n%s\n", strings.TrimSpace(s.about), strings.Trim(s.flags()+"\n"+s.end, "\n"))
		return false, Good
	case err != nil:
		return false, s.Complain(BadUsage, err)
	}
	return true, Good
}

// Complain says what is wrong, in one line, and returns the status.
func (s *Sub) Complain(status int, err error) int {
	fmt.Fprintf(s.stderr, "bench %s: %v\n", s.Name(), err)
	return status
}

// Job adds the flags that say how ranks are to be started.
func (s *Sub) Job(j *Job) {
	for _, f := range jobTable() {
		if f.name == "q" { // there is no table
			f.help = "print no line of its own that is no error, such as how the ranks are started"
		}
		put := func(value string) error { return f.set(j, value) }
		if f.value == "" {
			s.BoolFunc(f.name, f.help, func(value string) error {
				if value == "false" {
					return nil
				}
				return put(value)
			})
		} else {
			s.Func(f.name, f.help, put)
			s.values[f.name] = f.value
		}
	}
}

// Ranks adds -np, as the ways to start ranks have it; given says whether it was there.
func (s *Sub) Ranks(to *int, given *bool) {
	add(s, to, "np", "N", "ranks (on this machine: the cores, at least 2, at most 8)", func(value string) (int, error) {
		*given = true
		return count(value, MaxProcesses)
	})
}

// NoOperands is a [Sub.Stray] for a command that takes flags alone.
func NoOperands(rest []string) error {
	return fmt.Errorf("%s: an argument without a flag (-h lists the flags)", rest[0])
}

// Count adds a flag that is a whole number from 1 to most.
func (s *Sub) Count(to *int, name, help string, most int) {
	add(s, to, name, "N", help, func(value string) (int, error) { return count(value, most) })
}

// count reads a whole number from 1 to most.
func count(value string, most int) (n int, err error) {
	if n, err = whole(value, 1); err != nil || n > most {
		err = fmt.Errorf("it must be a whole number from 1 to %d", most)
	}
	return n, err
}

// Time adds a flag that is a time: 2s, 500us; a number alone is seconds.
func (s *Sub) Time(to *time.Duration, name, help string) { add(s, to, name, "TIME", help, span) }

// Percent adds a flag that is so many percent, from 0 on.
func (s *Sub) Percent(to *float64, name, help string) {
	add(s, to, name, "PERCENT", help, func(value string) (x float64, err error) {
		if x, err = strconv.ParseFloat(value, 64); err != nil || !(x >= 0) || math.IsInf(x, 0) {
			err = errors.New("it must be a percentage, such as 5")
		}
		return x, err
	})
}

// add adds a flag that parse reads; takes is what its value is called.
func add[T any](s *Sub, to *T, name, takes, help string, parse func(string) (T, error)) {
	s.values[name] = takes
	s.Func(name, help, func(value string) (err error) {
		*to, err = parse(value)
		return err
	})
}

func (s *Sub) parse(args []string) error {
	if i := slices.Index(args, "--"); i >= 0 {
		args, s.After = args[:i], args[i+1:]
	}
	for len(args) > 0 {
		arg := args[0]
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		f := s.Lookup(name)
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-" || strings.Contains(name, " "): // "-m 4" in quotes
			if s.Stray != nil {
				return s.Stray(args)
			}
			s.Operands, args = append(s.Operands, arg), args[1:]
			continue
		case name == "h" || name == "help":
			return goflag.ErrHelp
		case f == nil:
			var known []string
			s.VisitAll(func(f *goflag.Flag) { known = append(known, f.Name) })
			return unknown("-", name, "flag", known, "-h lists them")
		}
		args = args[1:]
		switch {
		case isBool(f) && glued && value != "true" && value != "false":
			return fmt.Errorf("%s: -%s takes no value", arg, name)
		case isBool(f) && !glued:
			value = "true"
		case !glued && len(args) == 0:
			_, help := s.usage(f)
			return fmt.Errorf("-%s needs a value: %s", name, help)
		case !glued:
			value, args = args[0], args[1:]
		}
		if err := s.Set(name, value); err != nil {
			return fmt.Errorf("-%s %s: %w", name, value, err)
		}
	}
	return nil
}

func isBool(f *goflag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// flags are the flags as the help has them.
func (s *Sub) flags() string {
	var b strings.Builder
	s.VisitAll(func(f *goflag.Flag) {
		value, help := s.usage(f)
		lines := prose.Wrap(help, 74)
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace("-"+f.Name+" "+value), strings.Join(lines, "\n"+strings.Repeat(" ", 21)))
	})
	return b.String()
}

// usage is what a flag takes, "" if nothing, and what it is for.
func (s *Sub) usage(f *goflag.Flag) (value, help string) {
	if value, help = goflag.UnquoteUsage(f); isBool(f) {
		return "", help
	}
	if own, has := s.values[f.Name]; has {
		value = own
	}
	return value, help
}
